// Package rego is writ's Rego side: it runs rule conditions that are written in
// Rego, writes a policy version and its rules as a Rego module, and evaluates
// such a module. It is the only package that imports OPA.
//
// The engine decides in CEL. The module that [Lower] writes decides the same, which a
// differential test checks. Authors read and test the module, `writ rego` prints it, and any OPA
// can run it.
//
// All Rego is compiled in one sandbox: Rego v1, the built-in functions of an allow-list (see
// sandbox.go), no document but its own package and the input, and a bound on its size. Its time
// is bounded, too. A failing function is an error, not an undefined value that a `not` would make
// true.
package rego
