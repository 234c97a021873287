//go:build !linux

package checkpoint

import "errors"

func exchange(string, string) error { return errors.ErrUnsupported }
