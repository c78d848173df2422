// Package reference is a second implementation of decisions. Its author had read decisions.md and
// resources.md but not package engine. If the two implementations disagree, one of them has a
// fault, or the text is ambiguous. The package is simple rather than fast. It imports no other
// package of writ, and only tests import it.
//
// Read reads resources, and ReadPattern reads patterns. Blocked and Allowed compare a resource with
// patterns. Evaluate decides a Case. A Generator makes cases that often meet the special situations
// of the two documents.
//
// Where the text is ambiguous, this package reads it as follows:
//
//   - A pattern of a name is compared with the readings of all readers, because the name may begin
//     with a wildcard that stands for a scheme. A pattern of another form is compared only with
//     the readings of that form's readers.
//   - The first ? of a URL's pattern is a wildcard in the path. It may also stand for the
//     beginning of the query. A query is brought into canonical form. The server's reading does
//     not decode the query.
//   - An address is the same with and without mailto:, for an allowance too. An address is not a
//     number: mailto:** does not allow the resources that sms:** allows.
//   - A pattern whose authority ends with ** has no separate path: https://** matches every URL of
//     that scheme.
//   - A list of hosts is normalised host by host and then compared as a whole.
//   - "Each alone and all together" means six readings, not all combinations.
//   - In match objects and trees, $ne and $nin on the resource are the negations of $eq and $in. A
//     text that $eq or $in quotes is a pattern without wildcards.
//   - If the condition of an approval cannot be evaluated, the approval and a deny of a lower
//     priority are both findings. A deny of the same priority is the only finding. An allow of the
//     same or a lower priority is not a finding.
//   - The rule that decides is a finding even if it allows and another check denies.
//   - The currency is compared whether or not a maximum is set.
//   - A disabled agent (kill switch) gets no finding agent.unregistered.
//   - A fragment of mailto: is part of the address before it, except for a block.
//   - If a rule with a condition in CEL or Rego allows, its condition sees an address without
//     mailto:.
//   - In Rego source, glob.match is OPA's function: it reads [::1] as a class of characters.
//
// For some resources, programs outside writ are a reason for stricter readings. There this package
// follows docs/resources.md:
//
//   - Some URLs are refused: a web or file URL inside < > or after URL:, a web URL with port 0,
//     and a URL with more than 64 hosts.
//   - A block compares an IPv6 address without its zone, too.
//   - Each host of a list with commas is a separate reading, for an allowance too. Each host of a
//     list with semicolons is a separate reading only for a block.
//   - A block also compares a service or a name with slashes in place of backslashes. It compares
//     each host of a service unchanged. If text follows the host and port, it compares the host
//     with the port and the host without the port.
//   - A block compares the scheme of a name in lower case.
//   - A block compares the addresses in every text with @ that is a name or has the address form.
//     Each address also ends at ? & = / and #.
package reference
