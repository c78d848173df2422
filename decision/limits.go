package decision

// maxUnverified is how many decisions wait to be verified: a policy that has to be
// prepared first takes tens of milliseconds.
const maxUnverified = 256
