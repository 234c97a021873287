package hf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/megatrain/mtc/runtime/plan"
)

// FuzzFolder reads whatever stands in a shard and in the index. What is accepted can be matched
// and loaded without a panic, and only when shapes and names are those of the map.
func FuzzFolder(f *testing.F) {
	folder := filepath.Join("testdata", "mistral")
	index, err := os.ReadFile(filepath.Join(folder, indexFile))
	if err != nil {
		f.Fatal(err)
	}
	shard, err := os.ReadFile(filepath.Join(folder, "model-00001-of-00005.safetensors"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(index, shard)
	f.Add([]byte(`{"weight_map": {"a": "model-00001-of-00005.safetensors"}}`), shard)
	f.Add([]byte(`{"weight_map": {"a": "model-00001-of-00005.safetensors"}}`),
		[]byte("\x38\x00\x00\x00\x00\x00\x00\x00{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}   \x00\x00\x80\x3f"))
	foreign := []plan.Foreign{{Names: []string{"a"}, Params: []string{"a"}}}
	shapes := Shapes{"a": {1}}
	f.Fuzz(func(t *testing.T, index, shard []byte) {
		dir := t.TempDir()
		put(t, dir, configFile, "{}")
		put(t, dir, indexFile, string(index))
		put(t, dir, "model-00001-of-00005.safetensors", string(shard))
		folder, err := Open(dir)
		if err != nil {
			return
		}
		defer folder.Close()
		m, err := folder.Match(foreign, shapes)
		if err != nil {
			return
		}
		p, view := slabPlan(false, []string{"a"}, shapes)
		if err := m.Load(p, view, nil); err != nil {
			t.Errorf("what matched cannot be loaded: %v", err)
		}
	})
}
