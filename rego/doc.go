// Package rego is writ's Rego side. It runs rule conditions that are written in Rego. It writes a
// policy version and its rules as a Rego module, and evaluates such a module. It is the only
// package that imports OPA.
//
// The engine evaluates conditions in CEL. The module that [Lower] writes decides the same: a
// differential test checks this. Authors read and test the module, `writ rego` prints it, and any
// OPA can run it.
//
// All Rego is compiled in one sandbox. It allows Rego v1, the built-in functions of an allow-list
// (see sandbox.go), and no document except the module's own package and the input. It bounds the
// size and the time of an evaluation. If a function fails, the evaluation ends with an error.
// Otherwise the call would be undefined, and a `not` would make it true.
package rego
