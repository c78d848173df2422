// Package rego is writ's Rego side: it runs rule conditions that are written in
// Rego, writes a policy version and its rules as a Rego module, and evaluates
// such a module. It is the only package that imports OPA.
//
// The engine decides in CEL; the module that [Lower] writes decides the same,
// which a differential test holds. It is what an author reads and tests, what an
// OPA elsewhere can run, and what `writ rego` prints.
//
// Everything that is compiled here, whoever wrote it, is compiled in one
// sandbox: Rego v1, the built-in functions of an allow-list (see sandbox.go),
// no document but its own package and the input, and a bound on its size. While
// it runs, its time is bounded too, and an error is an error: nothing that fails
// turns into an undefined value that a `not` would make true.
package rego
