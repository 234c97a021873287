package pack

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

	"github.com/megatrain/mtc/runtime/chat"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/tokenizer"
)

// chatML is the template that the word chatml names.
const chatML = `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// Speak sets the tokenizer, the files that go along with the data, and the chat template:
// a file, chatml, or with "" the tokenizer's own.
func (o *Options) Speak(tok *tokenizer.Folder, files map[string][]byte, template string) error {
	o.Tokenizer, o.Files = tok, files
	name, text := tok.TemplateFile, tok.Template
	switch {
	case template == "chatml":
		name, text = template, chatML
	case template != "":
		b, err := os.ReadFile(template)
		if err != nil {
			return fault.New("MT0602", template, "the chat template cannot be read").Wrap(pathless(err)).Help("`--template` takes a file, or chatml")
		}
		name, text = template, string(b)
	}
	if text == "" {
		return nil
	}
	if template != "" {
		o.Files["chat_template.jinja"] = []byte(text)
	}
	var err error
	if o.Template, err = chat.Compile(name, text, tok.BOS, tok.EOS); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(text))
	o.TemplateHash = hex.EncodeToString(sum[:8])
	return nil
}

// FilesOf reads the files of a tokenizer that go along with data.
func FilesOf(f *tokenizer.Folder) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, n := range tokenizer.Files {
		path := filepath.Join(f.Dir, n)
		if n == "tokenizer.json" {
			path = f.Name()
		}
		text, err := tokenizer.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fault.New("MT0602", path, "cannot be read").Wrap(pathless(err))
		}
		files[n] = text
	}
	return files, nil
}

// pathless strips the path from an error that repeats it.
func pathless(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
