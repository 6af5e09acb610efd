// The node can store its states in fjall, which the test does not use: its
// configuration names lmdb.
module.exports = {};
