// Package resource reads the resource of an intent as each program that may act on the resource
// reads it. A block holds if any of those programs would reach a resource that the block names. An
// allowance holds only if all of them stay within the allowance.
//
// The form of a resource determines its readers. The first form that fits is:
//
//	web        http: https: ws: wss: ftp:           client, browser, server, literal
//	file       file:                                browser, client, POSIX, Windows
//	Windows    C:/ C:\ \\                           Windows
//	service    any other chain of schemes and //    client, browser, server, literal
//	addresses  mailto: sms: tel:, a@b.example       each address by itself
//	name       everything else                      POSIX; with a backslash or two leading
//	                                                slashes also Windows; with an escape
//	                                                also server
//
// Each reader has its own file. The reader of literal URLs is in web.go:
//
//	client.go     RFC 3986, as curl, requests and Go send a URL
//	browser.go    the WHATWG URL standard
//	server.go     what a server makes of what was sent
//	posix.go      a POSIX kernel
//	windows.go    Win32
//	addresses.go  RFC 6068 (mailto), RFC 5724 (sms), RFC 3966 (tel)
//
// Readings are compared in canonical form. There an escape is replaced by its character. These
// escapes stay: ! $ & ' ( ) * + , ; = : @ / ? # % and controls, and bytes that are not UTF-8. A %
// that begins no escape becomes %25. In decoded readings, and where % ? # are letters, these three
// characters become escapes. For example, the client reads https://EXAMPLE.com:443/a/../%7Eb%2fc
// as https://example.com/~b%2Fc, and the server reads it as https://example.com/~b/c.
package resource
