// Package layers compares how package nodeconf puts the files and flags of a kubelet together
// with how the kubelet's own decoders do, for random files with the mistakes that people make.
package layers
