package codegen

import (
	"fmt"

	"github.com/dave/jennifer/jen"
)

// mainFile writes main.go: the program's parts in one place.
func (g *generator) mainFile() ([]byte, error) {
	f := g.newFile(true)
	f.PackageComment(fmt.Sprintf("// Program %s trains and samples the model of the same name, on the plan in plan_gen.go.", g.Program.Model.Name))
	f.PackageComment("// Each template_*_gen.go holds the launches of one kind of unit.")

	source := jen.Nil()
	if file := g.Program.Model.File; file != nil {
		f.Anon("embed")
		f.Comment("//go:embed " + g.sourceName())
		f.Var().Id("source").Index().Byte()
		source = jen.Id("source")
	}
	f.Line()
	f.Func().Id("main").Params().Block(
		jen.Qual(pkgProgram, "Main").Call(jen.Qual(pkgProgram, "Program").Custom(
			jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true},
			jen.Id("Plan").Op(":").Op("&").Id("thePlan"),
			jen.Id("Templates").Op(":").Id("templates"),
			jen.Id("Tables").Op(":").Id("tables"),
			jen.Id("Source").Op(":").Add(source),
			jen.Id("Device").Op(":").Func().Params().Params(jen.Qual(pkgDevice, "Device"), jen.Error()).Block(
				g.newDevice()),
		)))
	f.Line()
	f.Comment("templates are the functions of each kind of unit, in the order of the plan.")
	f.Var().Id("templates").Op("=").Index().Qual(pkgEngine, "Template").CustomFunc(
		jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true},
		func(list *jen.Group) {
			for i, t := range g.Program.Templates {
				list.Values(
					jen.Id("Name").Op(":").Lit(t.Name),
					jen.Id("Funcs").Op(":").Index(jen.Qual(pkgPlan, "NumFuncs")).Qual(pkgEngine, "TemplateFunc").CustomFunc(
						jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true},
						func(funcs *jen.Group) {
							for _, kind := range funcOrder {
								if t.Funcs[kind] != nil {
									funcs.Qual(pkgPlan, funcSuffix[kind]).Op(":").Id(g.templates[i] + funcSuffix[kind])
								}
							}
						}))
			}
		})
	f.Line()
	f.Comment("tables fill the constant tables, in the order of the plan.")
	var err error
	f.Var().Id("tables").Op("=").Index().Qual(pkgEngine, "TableFunc").CustomFunc(
		jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true},
		func(list *jen.Group) {
			for _, t := range g.Program.Tables {
				var fields []jen.Code
				for _, k := range t.Table.Consts {
					expr, e := literal(k)
					if e != nil {
						err = fmt.Errorf("table %s: %w", t.Name, e)
					}
					if expr != nil {
						fields = append(fields, jen.Id(k.Field).Op(":").Add(expr))
					}
				}
				room := pkgOps + t.Room
				list.Func().Params(jen.Id("dst").Index().Float32()).Block(
					jen.Qual(room, t.Table.Func).Call(jen.Id("dst"), jen.Qual(room, t.Table.Func+"Args").Values(fields...)).
						Comment(t.Name + " " + t.Table.Type.String()))
			}
		})
	if err != nil {
		return nil, err
	}
	return render(f)
}
