package plan

// Format numbers what a plan and what is bound with its tasks mean. A plan carries the number of the
// mtc that made it, and a program refuses to start where it is not its runtime's: a field that one of
// the two does not know would be nothing, and the run another one without a word (a step without
// clipping, say). It is raised with every change of their meaning; a test holds it to their types.
const Format = 2
