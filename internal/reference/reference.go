// Package reference decides a second time. Its author had read decisions.md and resources.md
// but not package engine. Where the two disagree, one of them has misread a rule, or the rule
// can be read in two ways. The package is simple rather than fast, imports nothing of writ's,
// and only tests import it.
//
// Read and ReadPattern read resources and patterns, Blocked and Allowed hold
// one against the other, Evaluate decides a Case, and a Generator makes cases
// in which everything that a rule names happens often.
//
// Where the text can be read in two ways, this is how it is read here:
//
//   - A name's pattern is held against the readings of every reader, since a
//     name may begin with a wildcard that stands for a scheme. Patterns of the
//     other forms are held against the readings of their own readers.
//   - The first ? of a URL's pattern is both a wildcard in the path and one
//     that may begin the query. A query is brought into the form of comparison
//     and not decoded by the server's reading.
//   - An address is the same with and without mailto:, also where it is
//     allowed, and no number: mailto:** does not allow what sms:** does.
//   - A pattern whose authority ends with ** has no path of its own, so that
//     https://** is every URL of that scheme.
//   - A list of hosts is normalised host by host and compared as a whole.
//   - Each alone and all together means six readings, not all combinations.
//   - In match objects and trees $ne and $nin on the resource are the negations
//     of $eq and $in, and a text that $eq or $in quotes is a pattern without
//     wildcards.
//   - Where an approval cannot be evaluated, it is a finding beside the deny of
//     a lower priority; a deny of its own priority is found alone, and an allow
//     of its own or a lower one is not found.
//   - The rule that decides is a finding even where it allows and others deny.
//   - The currency is compared whether or not a maximum is set.
//   - A kill switch that denies is found alone, not beside agent.unregistered.
//   - A fragment of mailto: is part of the address before it, but for a block.
//   - A condition in CEL or Rego that allows sees an address without mailto:.
//   - glob.match in a source of Rego is OPA's: [::1] is a class to it.
//
// Where outside programs made the engine stricter than the text, this package
// follows docs/resources.md:
//
//   - A web or file URL within < > or behind URL:, port 0 of a web URL and more
//     than 64 hosts are refused.
//   - A block looks at an IPv6 address without its zone.
//   - Each host that commas list is a reading of its own, also where it is
//     allowed; those of a list with semicolons are so for a block alone.
//   - A block looks at a service or a name with its backslashes as slashes, and at
//     each host of a service as it is where no host or port goes on, with and
//     without the port.
//   - A block looks at the scheme of a name in lower case.
//   - A block looks at the addresses within every text with @ that is a name or
//     addresses; each ends at ? & = / # as well.
package reference
