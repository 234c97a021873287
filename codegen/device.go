package codegen

import (
	"github.com/dave/jennifer/jen"

	"github.com/megatrain/mtc/runtime/tensor"
)

// newDevice returns the device that the program runs on. It is all that differs between
// targets outside of plan_gen.go; a program for CUDA is built with the tag cuda.
func (g *generator) newDevice() jen.Code {
	if g.Plan.Target != "cuda" {
		return jen.Return(jen.Qual(pkgCPU, "New").Call(), jen.Nil())
	}
	options := jen.Qual(pkgCUDA, "Options").Values()
	if g.Program.DType == tensor.F32 {
		options = jen.Qual(pkgCUDA, "Options").Values(jen.Id("F32").Op(":").True())
	}
	return jen.Return(jen.Qual(pkgCUDA, "New").Call(options))
}
