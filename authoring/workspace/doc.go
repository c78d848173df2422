// Package workspace compares an organization's policies, rules and lists in a directory with
// those on a server, and takes them from the one to the other.
//
//	policies/payments.yaml   a policy
//	rules.yaml               every rule, in the order in which they are asked
//	lists/payees.yaml        a list
//
// is what [Workspace.Pull] writes into an empty directory: a policy and a list a file, since one is
// reviewed and owned by itself, and the rules in one, since what a rule does depends on
// those above it. An author may arrange documents otherwise: every .yaml, .yml and .json
// file below the directory is read, and a document that changes is changed where it stands.
//
// What the server adds stays in the files: a policy's version, a rule's id and times. A
// policy is found by its policy_id, a rule by its id, else by its name, a list by its name. By
// updatedAt a rule or a list that somebody else changed on the server since it was pulled is told from one that was
// edited here, and by the server's versions a policy is.
package workspace
