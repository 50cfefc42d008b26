package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// The directory of the real programs, and the file to which calls are appended.
const (
	programsVariable = "RECORDED_PROGRAMS"
	callsVariable    = "RECORDED_CALLS"
)

const programPrefix = "terraform-provider-"

var handshake = plugin.HandshakeConfig{
	MagicCookieKey:   "TF_PLUGIN_MAGIC_COOKIE",
	MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
}

// Call is a line of the file: a request of the engine and the response of the provider, as encoded messages.
type Call struct {
	Provider string `json:"provider"`
	Method   string `json:"method"`
	Request  []byte `json:"request"`
	// Response is missing when the call failed.
	Response []byte `json:"response,omitempty"`
	Failure  string `json:"failure,omitempty"`
}

// serveRecorder is a provider that passes every call to the real one, and writes it down. Its own name selects the real
// provider.
func serveRecorder() {
	name := strings.TrimPrefix(filepath.Base(os.Args[0]), programPrefix)
	logger := hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Error})
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: map[int]plugin.PluginSet{5: connecting, 6: connecting},
		Cmd:              exec.Command(filepath.Join(os.Getenv(programsVariable), name)),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		Logger:           logger,
		SyncStdout:       os.Stdout,
		SyncStderr:       os.Stderr,
	})
	defer client.Kill()
	protocol, err := client.Client()
	check(err)
	behind, err := protocol.Dispense("provider")
	check(err)
	file, err := os.OpenFile(os.Getenv(callsVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	check(err)
	recorder := &recorder{provider: name, behind: behind.(*grpc.ClientConn), file: file}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: map[int]plugin.PluginSet{client.NegotiatedVersion(): connecting},
		Logger:           logger,
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			options = append(options, grpc.UnknownServiceHandler(recorder.pass), grpc.ForceServerCodecV2(codec{}))
			return grpc.NewServer(append(options, grpc.MaxRecvMsgSize(largest), grpc.MaxSendMsgSize(largest))...)
		},
	})
}

// largest is the limit of the size of messages in bytes: schemas are large.
const largest = 256 << 20

type recorder struct {
	provider string
	behind   *grpc.ClientConn
	lock     sync.Mutex
	file     *os.File
}

func (r *recorder) pass(_ any, stream grpc.ServerStream) error {
	path, _ := grpc.MethodFromServerStream(stream)
	service, method, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !strings.HasPrefix(service, "tfplugin") {
		return status.Error(codes.Unimplemented, service)
	}
	var request, response frame
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	sizes := []grpc.CallOption{grpc.MaxCallRecvMsgSize(largest), grpc.MaxCallSendMsgSize(largest)}
	err := r.behind.Invoke(stream.Context(), path, &request, &response, append(sizes, grpc.ForceCodecV2(codec{}))...)
	call := Call{Provider: r.provider, Method: method, Request: request, Response: response}
	if err != nil {
		call.Response, call.Failure = nil, status.Code(err).String()
	}
	if err := r.write(call); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	return stream.SendMsg(&response)
}

func (r *recorder) write(call Call) error {
	line, err := json.Marshal(call)
	if err != nil {
		return err
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	_, err = r.file.Write(append(line, '\n'))
	return err
}

// frame is an encoded message.
type frame []byte

// codec passes frames through, and encodes the messages of the services of go-plugin.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(message any) (mem.BufferSlice, error) {
	if frame, ok := message.(*frame); ok {
		return mem.BufferSlice{mem.SliceBuffer(*frame)}, nil
	}
	return encoding.GetCodecV2("proto").Marshal(message)
}

func (codec) Unmarshal(data mem.BufferSlice, message any) error {
	if frame, ok := message.(*frame); ok {
		*frame = data.Materialize()
		return nil
	}
	return encoding.GetCodecV2("proto").Unmarshal(data, message)
}

// connection is a plugin that is only its connection.
type connection struct{ plugin.NetRPCUnsupportedPlugin }

var connecting = plugin.PluginSet{"provider": connection{}}

func (connection) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (connection) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, behind *grpc.ClientConn) (any, error) {
	return behind, nil
}

// readCalls returns the calls in the file, and empties it.
func readCalls(path string) ([]Call, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var calls []Call
	for lines := json.NewDecoder(file); ; {
		var call Call
		if err := lines.Decode(&call); errors.Is(err, io.EOF) {
			return calls, os.Remove(path)
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		calls = append(calls, call)
	}
}
