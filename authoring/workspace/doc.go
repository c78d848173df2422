// Package workspace compares an organization's policies, rules and lists in a directory with
// those on a server, and takes them from the one to the other.
//
//	policies/payments.yaml   a policy
//	rules.yaml               every rule, in the order in which they are asked
//	lists/payees.yaml        a list
//
// is the layout that [Plan.Pull] writes into an empty directory. A policy or a list has a file of
// its own, because it is reviewed by itself. The rules share a file, because the effect of a rule
// depends on the rules above it. Authors may use any other layout: every .yaml, .yml and .json
// file below the directory is read, and a document is changed in its file.
//
// The files keep the members that the server adds: a policy's version, a rule's id and times. A
// policy is found by its policy_id, a list by its name, a rule by its id or, if the server does
// not have that, by its name. updatedAt distinguishes a rule or a list that was changed on the
// server from one edited here; for policies the version does.
package workspace
