package main

import "github.com/spf13/cobra"

// verbs lists the commands in the order of a user's day, which is the order of the help.
//
// To add a verb: write cmd/mtc/NAME.go with
//
//	func newNameCmd(e *env) *cobra.Command
//
// and one line here. In it, print results to e.out and progress or warnings to e.err (never
// to os.Stdout), take words with enumFlag so that a misspelt one gets "did you mean", and
// return an error from RunE instead of exiting:
//
//	*diag.List (diags.Err())    printed as --diag says; exit 1 (3 for MT04 and MT05, 4 for MT00)
//	usageErrorf, inputErrorf,   exit 2, 1, 3; .hint("...") adds a line of help
//	machineErrorf
//	exitStatus(n)               exit n, nothing printed (a child has said what is wrong)
//	any other error             printed, exit 1
//
// A panic becomes an internal error, exit 4. Arguments are checked with argRange. Tests are
// testscripts in testdata/script.
var verbs = []func(e *env) *cobra.Command{
	newNewCmd,
	newCheckCmd,
	newFmtCmd,
	newPlanCmd,
	newCompileCmd,
	newRunCmd,
	newGenerateCmd,
	newImportCmd,
	newExportCmd,
	newCalibrateCmd,
	newDataCmd,
	newInspectCmd,
	newCompareCmd,
	newDiffCmd,
	newDoctorCmd,
	newBenchCmd,
	newOpsCmd,
	newExplainCmd,
}
