// Package hf reads and writes the folders that hold Hugging Face models: config.json, weights
// in one or many safetensors files with their index, and the files of the tokenizer.
//
//	Open     a folder: its configuration and the headers of its weights, checked
//	Describe which family of models it is, with the values of that family's parameters
//	Match    its tensors against a plan's map: every name once, shapes equal, nothing left over
//	Load     its weights into the slabs of a plan, one tensor in memory at a time
//	Keep     what an export has to give back, into a run folder
//	Export   a checkpoint as such a folder again
//
// Nothing here knows a model's mathematics beyond what config.json says; how tensors become
// parameters is the plan's map (plan.Foreign), which a model declares in its text.
//
// Files come from elsewhere, so everything is bounded and checked before it is used. What is
// wrong with a folder is reported at once, not one fault after another. Errors are
// *fault.Error with codes MT0602, MT0623, MT0624 and MT0660 to MT0664.
package hf
