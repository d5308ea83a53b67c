// Command sidebyside runs tarn and a real etcd, one after the other, under the
// same loads and prints what each one took, and the ratios.
//
// Every answer is checked: a server that loses an update, an event or a key is
// reported as failed, not as fast. See README.md.
package main
