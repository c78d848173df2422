# Matches deploys to production while the integration says that there is a freeze.
package deploys.freeze

production if glob.match("k8s/prod/**", ["/"], input.intent.resource)

match if {
	production
	input.intent.metadata["fact.window"] == "freeze"
}
