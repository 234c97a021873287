package plan

import "testing"

// Windows describes lists of the kinds that models have, and Windowed gives them back.
func TestWindowsComeBack(t *testing.T) {
	for text, want := range map[string][2]int{
		"":         {0, 1},
		"....":     {0, 5},
		"wwww":     {0, 5},
		"..ww":     {2, 5},
		"...w":     {3, 5},
		"w.w.w":    {0, 2},
		".w.w":     {1, 2},
		"wwwwww.w": {0, 7},
		"ww.ww.":   {0, 3},
		"..ww.ww.": {2, 3},
	} {
		list := make([]bool, len(text))
		any := false
		for i := range text {
			list[i] = text[i] == 'w'
			any = any || list[i]
		}
		from, every := Windows(list)
		if from != want[0] || every != want[1] {
			t.Errorf("%q: from %d, every %d, want %v", text, from, every, want)
		}
		for i := range list {
			if any && Windowed(i, from, every) != list[i] {
				t.Errorf("%q: layer %d comes back otherwise", text, i)
			}
		}
	}
	// What is neither is not given back, which an import notices.
	from, every := Windows([]bool{true, false, true, true, false})
	if Windowed(3, from, every) {
		t.Error("a list without a period came back")
	}
}
