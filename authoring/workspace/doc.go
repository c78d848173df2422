// Package workspace compares an organization's policies, rules, lists and libraries in the files of a
// directory with the documents on a server. It copies them in either direction.
//
//	policies/payments.yaml   a policy
//	rules.yaml               every rule, in the order in which they are asked
//	lists/payees.yaml        a list
//	lib/net/net.rego         a module of the library net
//	lib/net/.pulled          what the server said of that library
//
// [Plan.Pull] writes this layout into an empty directory. A policy or a list has a file of its
// own, because it is reviewed by itself. The rules share a file, because the effect of a rule
// depends on the rules above it. Authors may use any other layout. Every .yaml, .yml and .json
// file below the directory is read. A changed document stays in its file. Libraries are always in lib,
// where OPA finds them, too.
//
// The files keep the members that the server adds: a policy's version, and a rule's id and times. A
// policy is found on the server by its policy_id, and a list by its name. A rule is found by its
// id. If the server does not have this id, the rule is found by its name. updatedAt tells whether a
// rule or a list was changed on the server or only in the file. For a policy the version tells
// this, and for a library the file .pulled: its modules are what the author wrote, byte for byte.
package workspace
