package fault

import "testing"

func TestUnfetchedFiles(t *testing.T) {
	for begin, want := range map[string]bool{
		"":                                   false,
		"version":                            false,
		"version https://example/":           false,
		" version https://git-lfs":           false,
		"version https://git-lfs":            true,
		"version https://git-lfs.x/v1\noid ": true,
	} {
		f := Unfetched("MT0608", "a", begin)
		if (f != nil) != want || want && (f.Code != "MT0608" || f.Path != "a" || f.Hint == "") {
			t.Errorf("%q: %v", begin, f)
		}
	}
}
