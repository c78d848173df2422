package document

// maxNodes bounds what a file's aliases can multiply to.
const maxNodes = 1_000_000
