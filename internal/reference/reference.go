// Package reference is a second implementation of decisions. Its author had read decisions.md and
// resources.md but not package engine. If the package and the engine disagree, one of them misreads
// a rule, or the rule can be read in two ways. The package is simple rather than fast. It imports
// no other package of writ, and only tests import it.
//
// Read reads resources, and ReadPattern reads patterns. Blocked and Allowed compare a resource with
// patterns. Evaluate decides a Case. A Generator makes cases in which everything that a rule names
// happens often.
//
// If the text can be read in two ways, this package reads it as follows:
//
//   - A name's pattern is compared with the readings of every reader: a name may begin with a
//     wildcard that stands for a scheme. A pattern of another form is compared with the readings of
//     its own readers.
//   - The first ? of a URL's pattern is a wildcard in the path, and also a wildcard that may begin
//     the query. A query is brought into the form of comparison. The server's reading does not
//     decode the query.
//   - An address is the same with and without mailto:, for an allowance too. An address is not a
//     number: mailto:** does not allow the resources that sms:** allows.
//   - A pattern whose authority ends with ** has no path of its own: https://** is every URL of
//     that scheme.
//   - A list of hosts is normalised host by host and compared as a whole.
//   - "Each alone and all together" means six readings, not all combinations.
//   - In match objects and trees, $ne and $nin on the resource are the negations of $eq and $in. A
//     text that $eq or $in quotes is a pattern without wildcards.
//   - An approval that cannot be evaluated is a finding together with a deny of a lower priority. A
//     deny of the same priority is the only finding. An allow of the same or a lower priority is
//     not a finding.
//   - The rule that decides is a finding even if it allows and others deny.
//   - The currency is compared whether or not a maximum is set.
//   - A kill switch that denies is found alone, not beside agent.unregistered.
//   - A fragment of mailto: is part of the address before it, except for a block.
//   - A condition in CEL or Rego that allows sees an address without mailto:.
//   - glob.match in a source of Rego is OPA's: it reads [::1] as a class of characters.
//
// In some places outside programs made the engine stricter than the text. There this package
// follows docs/resources.md:
//
//   - A web or file URL within < > or behind URL:, port 0 of a web URL and more
//     than 64 hosts are refused.
//   - A block looks at an IPv6 address without its zone.
//   - Each host of a list with commas is a reading of its own, for an allowance too. Each host of a
//     list with semicolons is a reading of its own only for a block.
//   - A block looks at a service or a name with its backslashes as slashes. It looks at each host
//     of a service as it is. If the text goes on after the host and port, it looks at the host with
//     the port and at the host without the port.
//   - A block looks at the scheme of a name in lower case.
//   - A block looks at the addresses within every text with @ that is a name or
//     addresses; each ends at ? & = / # as well.
package reference
