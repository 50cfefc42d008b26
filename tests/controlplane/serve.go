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

// serve runs etcd and kube-apiserver: linked into this process, or the programs in a directory of assets, to test with
// other versions of Kubernetes.
func serve(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	dataDir := flags.String("data-dir", "", "directory for the data, new or existing (required)")
	port := flags.Int("port", 0, "port of the API server; by default the last one of this data directory, or a free one")
	auditLog := flags.String("audit-log", "", "file to append an audit log to, with the bodies of requests")
	assets := flags.String("assets", "", "directory with etcd and kube-apiserver to run instead of the linked ones")
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
	// Test data need not survive a power failure, and fsync is most of the cost of a write.
	config.UnsafeNoFsync = true
	config.EnableGRPCGateway = false
	// The default of 2 GiB is too little for a hundred thousand objects with their versions until the next compaction.
	config.QuotaBackendBytes = 8 << 30
	// The only member elects itself after the election timeout, so the timeout delays every start.
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

// etcdArguments returns the configuration of newEtcdConfig as flags.
func etcdArguments(config *embed.Config) []string {
	client, peer := config.ListenClientUrls[0].String(), config.ListenPeerUrls[0].String()
	return []string{
		"--name=" + config.Name,
		"--data-dir=" + config.Dir,
		"--log-level=" + config.LogLevel,
		"--unsafe-no-fsync",
		fmt.Sprintf("--quota-backend-bytes=%d", config.QuotaBackendBytes),
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
	// Each log segment is allocated at its full size; the default of 64 MB would be most of the data of a test.
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
		// The endpoints of the service "kubernetes" must not contain a loopback address, so they are not written.
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
		// The default mode is "blocking": when a request has returned, it is in the file.
		// Readers of the log follow one file, so it is never rotated. The size is in MB.
		arguments = append(arguments, "--audit-policy-file="+files.auditPolicy, "--audit-log-path="+auditLog, "--audit-log-maxsize=1000000")
	}
	return arguments
}

// announceReady prints the "ready" line when the API server is ready. /readyz covers the default roles, but not the
// namespace "default", which clients need.
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

// apiServerPort selects the port: the requested one, the one of the last start, or a free one. The last one is
// preferred so that kubeconfigs stay valid after a restart.
func (f files) apiServerPort(requested int) (int, error) {
	if requested == 0 {
		if content, err := os.ReadFile(f.port); err == nil {
			last, err := strconv.Atoi(strings.TrimSpace(string(content)))
			if err == nil && portIsFree(last) {
				requested = last
			}
		}
	}
	if requested == 0 {
		free, err := freePorts(1)
		if err != nil {
			return 0, err
		}
		requested = free[0]
	}
	if !portIsFree(requested) {
		return 0, fmt.Errorf("port %d is in use", requested)
	}
	return requested, nil
}

// freePorts returns ports below the range for outgoing connections: another connection must not take the port of an API
// server that is stopped for a while.
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
