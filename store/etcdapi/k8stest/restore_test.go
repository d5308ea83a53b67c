package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	registry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/tools/cache"
)

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() {
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	utilruntime.Must(corev1.AddToScheme(scheme))
}

// patience is how long clients may take to find their way. They wait up to half a minute between two tries.
const patience = 2 * time.Minute

// node is a tarn on a data directory and an address that stay the same over its starts.
type node struct {
	t         *testing.T
	exe       string
	dir, addr string
	cmd       *exec.Cmd
}

func newNode(t *testing.T) *node {
	s, err := findServer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if s.kind != "tarn" {
		t.Skip("only tarn has tarn restore")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return &node{t: t, exe: s.path, dir: filepath.Join(t.TempDir(), "data"), addr: l.Addr().String()}
}

// start returns when the server serves.
func (n *node) start() {
	n.t.Helper()
	n.cmd = exec.Command(n.exe, "serve", "--data-dir="+n.dir, "--listen-client-urls=http://"+n.addr)
	stderr, err := n.cmd.StderrPipe()
	if err == nil {
		err = n.cmd.Start()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	cmd, serves := n.cmd, make(chan bool, 1)
	n.t.Cleanup(func() { _ = cmd.Process.Kill() })
	go func() {
		for scan := bufio.NewScanner(stderr); scan.Scan(); {
			if strings.Contains(scan.Text(), "serving clients") {
				serves <- true
			}
		}
		serves <- false
		_ = cmd.Wait()
	}()
	if !<-serves {
		n.t.Fatal("tarn serve ended before it served")
	}
}

func (n *node) stop() {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.cmd.Process.Wait(); err != nil && !strings.Contains(err.Error(), "no child processes") {
		n.t.Fatal(err)
	}
}

func (n *node) tarn(args ...string) string {
	n.t.Helper()
	out, err := exec.Command(n.exe, append(args, "--data-dir="+n.dir, "--copies")...).Output()
	if err != nil {
		stderr := ""
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = string(exit.Stderr)
		}
		n.t.Fatalf("tarn %s: %v: %s%s", strings.Join(args, " "), err, out, stderr)
	}
	return strings.TrimSpace(string(out))
}

// apiserver is what an API server has for pods: the etcd3 storage, with the watch cache on it, and
// values in protobuf.
func apiserver(t *testing.T, n *node) storage.Interface {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("no serializer for protobuf")
	}
	codec := codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), examplev1.SchemeGroupVersion, schema.GroupVersion{Group: example.GroupName, Version: runtime.APIVersionInternal})
	config := storagebackend.NewDefaultConfig("/registry", codec)
	config.Transport.ServerList = []string{"http://" + n.addr}
	s, destroy, err := registry.StorageWithCacher()(config.ForResource(schema.GroupResource{Resource: "pods"}), "/pods/",
		func(obj runtime.Object) (string, error) { return "/pods/default/" + obj.(*example.Pod).Name, nil },
		func() runtime.Object { return &example.Pod{} }, func() runtime.Object { return &example.PodList{} },
		func(obj runtime.Object) (labels.Set, fields.Set, error) {
			pod := obj.(*example.Pod)
			return pod.Labels, fields.Set{"metadata.name": pod.Name}, nil
		}, nil, &cache.Indexers{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	return s
}

func createPod(t *testing.T, s storage.Interface, name string) {
	t.Helper()
	pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "default", UID: types.UID("uid-" + name), Labels: map[string]string{"app": name}, CreationTimestamp: metav1.Unix(1_750_000_000, 0),
	}}
	if err := s.Create(t.Context(), "/pods/default/"+name, pod, nil, 0); err != nil {
		t.Fatal(err)
	}
}

// informer keeps a controller's view of the pods, with the reflector that controllers have.
func informer(t *testing.T, s storage.Interface) cache.Store {
	options := func(o metav1.ListOptions) storage.ListOptions {
		return storage.ListOptions{ResourceVersion: o.ResourceVersion, Predicate: storage.Everything, Recursive: true, ProgressNotify: true}
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &example.PodList{}
			return list, s.GetList(ctx, "/pods/", options(o), list)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := s.Watch(ctx, "/pods/", options(o))
			if err != nil {
				return nil, err
			}
			return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
				if c, ok := e.Object.(runtime.CacheableObject); ok { // as an API server has it until it is encoded
					e.Object = c.GetObject()
				}
				return e, true
			}), nil
		},
	}
	known := cache.NewStore(cache.MetaNamespaceKeyFunc)
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, unsupportedWatchList{}), &example.Pod{}, known, cache.ReflectorOptions{})
	go r.RunWithContext(t.Context())
	return known
}

// unsupportedWatchList makes the reflector list and then watch.
type unsupportedWatchList struct{}

func (unsupportedWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// waitFor waits until names gives what is wanted.
func waitFor(t *testing.T, who string, names func() []string, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []string
	for ctx.Err() == nil {
		got = names()
		if slices.Sort(got); slices.Equal(got, want) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatalf("%s: %q instead of %q", who, got, want)
}

// TestRestoreUnderTheWatchCache: after tarn restore, the watch cache and a controller's reflector find
// by themselves what is there, without ghosts of what came after the snapshot.
func TestRestoreUnderTheWatchCache(t *testing.T) {
	n := newNode(t)
	n.start()
	s := apiserver(t, n)
	known := informer(t, s)
	controller := func() (names []string) {
		for _, key := range known.ListKeys() {
			names = append(names, strings.TrimPrefix(key, "default/"))
		}
		return names
	}
	// The version 0 is what the cache has.
	version := ""
	listed := func(at string) func() []string {
		return func() (names []string) {
			list := &example.PodList{}
			if err := s.GetList(t.Context(), "/pods/", storage.ListOptions{ResourceVersion: at, Predicate: storage.Everything, Recursive: true}, list); err != nil {
				return []string{err.Error()}
			}
			for _, pod := range list.Items {
				names = append(names, pod.Name)
			}
			version = list.ResourceVersion
			return names
		}
	}
	all := func(when string, want ...string) {
		t.Helper()
		waitFor(t, when+", the controller", controller, want...)
		waitFor(t, when+", a list", listed(""), want...)
		waitFor(t, when+", the cache", listed("0"), want...)
	}
	for _, name := range []string{"a", "b", "c"} {
		createPod(t, s, name)
	}
	all("before", "a", "b", "c")
	name := n.tarn("snapshot", "create", "--endpoint=http://"+n.addr)
	createPod(t, s, "ghost")
	if err := s.Delete(t.Context(), "/pods/default/b", &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	all("after the snapshot", "a", "c", "ghost")
	before, err := storage.APIObjectVersioner{}.ParseResourceVersion(version)
	if err != nil {
		t.Fatal(err)
	}

	n.stop()
	n.tarn("restore", name)
	n.start()
	all("after the restore", "a", "b", "c")
	if after, err := (storage.APIObjectVersioner{}).ParseResourceVersion(version); err != nil || after <= before {
		t.Errorf("resource version %d after %d, %v", after, before, err)
	}
	createPod(t, s, "d")
	all("later", "a", "b", "c", "d")
}

// TestRestoreKeyReadsWhatKubernetesWrites: the objects that tarn restore --key prints are those that
// Kubernetes' own serializer has written.
func TestRestoreKeyReadsWhatKubernetesWrites(t *testing.T) {
	n := newNode(t)
	n.start()
	createPod(t, apiserver(t, n), "a")
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "db", Namespace: "default", UID: "u", Labels: map[string]string{"x": "y"}, Annotations: map[string]string{"note": "1"},
			Finalizers: []string{"example.com/f"}, CreationTimestamp: metav1.Unix(1_750_000_000, 0),
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"password": {0, 1, 255}, "empty": {}}, Immutable: new(true),
	}
	conf := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "conf", Namespace: "default"},
		Data: map[string]string{"a": "b: c\n"}, BinaryData: map[string][]byte{"bin": {255}},
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{n.addr}, DialTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for key, obj := range map[string]runtime.Object{"/registry/secrets/default/db": secret, "/registry/configmaps/default/conf": conf} {
		var b strings.Builder
		if err := protobuf.NewSerializer(scheme, scheme).Encode(obj, &b); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Put(t.Context(), key, b.String()); err != nil {
			t.Fatal(err)
		}
	}
	name := n.tarn("snapshot", "create", "--endpoint=http://"+n.addr)
	read := func(key string, into any) (complete bool) {
		t.Helper()
		var r struct {
			Object   json.RawMessage
			Complete bool
		}
		if err := json.Unmarshal([]byte(n.tarn("restore", name, "--output=json", "--key="+key)), &r); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(r.Object, into); err != nil {
			t.Fatalf("%s: %v in %s", key, err, r.Object)
		}
		return r.Complete
	}
	var gotSecret corev1.Secret
	if !read("/registry/secrets/default/db", &gotSecret) || fmt.Sprint(gotSecret.ObjectMeta.CreationTimestamp.Unix()) != "1750000000" {
		t.Errorf("%+v", gotSecret)
	}
	gotSecret.CreationTimestamp = secret.CreationTimestamp // of another time zone
	if fmt.Sprintf("%#v", gotSecret.ObjectMeta) != fmt.Sprintf("%#v", secret.ObjectMeta) || fmt.Sprint(gotSecret.Data, gotSecret.Type, *gotSecret.Immutable) != fmt.Sprint(secret.Data, secret.Type, *secret.Immutable) {
		t.Errorf("%+v\ninstead of %+v", gotSecret, *secret)
	}
	var gotConf corev1.ConfigMap
	if !read("/registry/configmaps/default/conf", &gotConf) || fmt.Sprint(gotConf.Data, gotConf.BinaryData) != fmt.Sprint(conf.Data, conf.BinaryData) {
		t.Errorf("%+v", gotConf)
	}
	var pod struct {
		metav1.TypeMeta
		Metadata metav1.ObjectMeta
	}
	if read("/registry/pods/default/a", &pod) || pod.Kind != "Pod" || pod.APIVersion != examplev1.SchemeGroupVersion.String() || pod.Metadata.Name != "a" || pod.Metadata.UID != "uid-a" || pod.Metadata.Labels["app"] != "a" {
		t.Errorf("%+v", pod)
	}
}
