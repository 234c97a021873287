package fault

import "strings"

// Unfetched is the fault of a file that Git LFS has not fetched: it begins as the few lines do that stand
// in its place. Nil: it does not.
func Unfetched(code, path, begin string) *Error {
	if !strings.HasPrefix(begin, "version https://git-lfs") {
		return nil
	}
	return New(code, path, "Git LFS has not fetched this file: a few lines stand in its place until `git lfs pull`").Help("`git lfs pull` fetches it")
}
