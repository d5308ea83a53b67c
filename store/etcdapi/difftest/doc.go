// Package difftest sends the same requests to a real etcd and to tarn and
// compares every answer: status code, text and each field of each message.
//
// It is a module of its own because it pulls in etcd's server. A case is a list
// of steps (see Case); every case starts on two fresh, empty servers, so that
// revisions in it are plain numbers: the first write is revision 2.
package difftest
