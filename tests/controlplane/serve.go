package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// serve runs etcd and kube-apiserver: linked into this process, or the programs of a folder of assets, which is how
// the tests meet other versions of Kubernetes.
func serve(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	dataDir := flags.String("data-dir", "", "where everything is kept; may exist already (required)")
	port := flags.Int("port", 0, "port of the API server; by default the one used last in this data directory, or a free one")
	auditLog := flags.String("audit-log", "", "file to append an audit log to, with the bodies of requests")
	assets := flags.String("assets", "", "directory with etcd and kube-apiserver to run instead of those linked in")
	_ = flags.Parse(args)
	if *dataDir == "" {
		return errors.New("--data-dir is required")
	}

	var children processes
	exitWithParent(func() { children.kill() })

	files := filesIn(*dataDir)
	chosen, err := files.apiServerPort(*port)
	if err != nil {
		return err
	}
	if err := files.prepare(chosen); err != nil {
		return err
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	etcd, err := newEtcdConfig(filepath.Join(*dataDir, "etcd"), ports[0], ports[1])
	if err != nil {
		return err
	}
	arguments := apiServerArguments(files, chosen, ports[0], *auditLog)
	go announceReady(files.kubeconfig)

	if *assets != "" {
		if err := children.start(filepath.Join(*assets, "etcd"), etcdArguments(etcd)); err != nil {
			return err
		}
		if err := children.start(filepath.Join(*assets, "kube-apiserver"), arguments); err != nil {
			return err
		}
		return children.wait()
	}
	if err := startEtcd(etcd); err != nil {
		return err
	}
	command := apiserver.NewAPIServerCommand()
	command.SetArgs(arguments)
	os.Exit(cli.Run(command))
	return nil
}

func newEtcdConfig(dir string, clientPort, peerPort int) (*embed.Config, error) {
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "error"
	// A test's data need not survive a power cut, and flushing is most of what a write costs.
	config.UnsafeNoFsync = true
	config.EnableGRPCGateway = false
	// The only member elects itself after an election timeout, which is part of every start.
	config.TickMs = 20
	config.ElectionMs = 200
	client, err := url.Parse(fmt.Sprintf("http://127.0.0.1:%d", clientPort))
	if err != nil {
		return nil, err
	}
	peer, err := url.Parse(fmt.Sprintf("http://127.0.0.1:%d", peerPort))
	if err != nil {
		return nil, err
	}
	config.ListenClientUrls = []url.URL{*client}
	config.AdvertiseClientUrls = config.ListenClientUrls
	config.ListenPeerUrls = []url.URL{*peer}
	config.AdvertisePeerUrls = config.ListenPeerUrls
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	return config, nil
}

// etcdArguments says in flags what newEtcdConfig says in fields.
func etcdArguments(config *embed.Config) []string {
	client, peer := config.ListenClientUrls[0].String(), config.ListenPeerUrls[0].String()
	return []string{
		"--name=" + config.Name,
		"--data-dir=" + config.Dir,
		"--log-level=" + config.LogLevel,
		"--unsafe-no-fsync",
		fmt.Sprintf("--heartbeat-interval=%d", config.TickMs),
		fmt.Sprintf("--election-timeout=%d", config.ElectionMs),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + config.InitialCluster,
	}
}

func startEtcd(config *embed.Config) error {
	// Each log segment is allocated in full, at once; the usual 64 MB would be most of a test's data.
	wal.SegmentSizeBytes = 8 << 20
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		return fmt.Errorf("starting etcd: %w", err)
	}
	go func() {
		fmt.Fprintf(os.Stderr, "etcd stopped: %v\n", <-etcd.Err())
		os.Exit(1)
	}()
	return nil
}

func apiServerArguments(files files, port, etcdPort int, auditLog string) []string {
	arguments := []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--advertise-address=127.0.0.1",
		// A loopback address is not allowed in the endpoints of the service "kubernetes", so nobody keeps them.
		"--endpoint-reconciler-type=none",
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", etcdPort),
		"--tls-cert-file=" + files.servingCert,
		"--tls-private-key-file=" + files.servingKey,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + files.serviceAccountKey,
		"--service-account-signing-key-file=" + files.serviceAccountKey,
		"--token-auth-file=" + files.tokens,
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/16",
		"--allow-privileged=true",
		"--profiling=false",
	}
	if auditLog != "" {
		// Mode "blocking", the default: an answered request is in the file.
		arguments = append(arguments, "--audit-policy-file="+files.auditPolicy, "--audit-log-path="+auditLog)
	}
	return arguments
}

// announceReady says on stdout once that the API server is ready. /readyz covers the default roles, but not the
// namespace "default", which everything else takes for granted.
func announceReady(kubeconfig string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		fmt.Fprintf(os.Stderr, "reading %s: %v\n", kubeconfig, err)
		os.Exit(1)
	}
	config.QPS = -1
	client := kubernetes.NewForConfigOrDie(config).RESTClient()
	for {
		err := client.Get().AbsPath("/readyz").Do(context.Background()).Error()
		if err == nil {
			err = client.Get().AbsPath("/api/v1/namespaces/default").Do(context.Background()).Error()
		}
		if err == nil {
			fmt.Println("ready " + kubeconfig)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// apiServerPort decides on a port and remembers it, so that kubeconfigs handed out stay right after a restart.
func (f files) apiServerPort(wanted int) (int, error) {
	if wanted == 0 {
		if content, err := os.ReadFile(f.port); err == nil {
			last, err := strconv.Atoi(strings.TrimSpace(string(content)))
			if err == nil && portIsFree(last) {
				wanted = last
			}
		}
	}
	if wanted == 0 {
		free, err := freePorts(1)
		if err != nil {
			return 0, err
		}
		wanted = free[0]
	}
	if !portIsFree(wanted) {
		return 0, fmt.Errorf("port %d is in use", wanted)
	}
	return wanted, nil
}

// freePorts chooses below the range from which systems take the ports of outgoing connections: the port of an API
// server that is away for a while must not become the near end of somebody's connection.
func freePorts(count int) ([]int, error) {
	var found []int
	for range 1000 {
		port := 20000 + rand.IntN(10000)
		if portIsFree(port) {
			found = append(found, port)
		}
		if len(found) == count {
			return found, nil
		}
	}
	return nil, errors.New("no free port between 20000 and 30000")
}

func portIsFree(port int) bool {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
