# What belongs to the company's network. Rules import it as data.lib.net.
package lib.net

inside(host) if endswith(host, ".corp.example")

inside("localhost")
