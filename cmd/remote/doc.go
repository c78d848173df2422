// Package remote is what the verbs share that work with a server: [Profiles] say whom a user acts as, and
// the rest asks a server and prints its answers for people. All text of a server is printed as package
// printable makes it.
package remote
