package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// files are the paths of the files of a control plane, except for those of etcd.
type files struct {
	dir               string
	port              string
	caCert            string
	servingCert       string
	servingKey        string
	serviceAccountKey string
	tokens            string
	auditPolicy       string
	kubeconfig        string
}

func filesIn(dir string) files {
	in := func(name string) string { return filepath.Join(dir, name) }
	return files{
		dir:               dir,
		port:              in("port"),
		caCert:            in("ca.crt"),
		servingCert:       in("apiserver.crt"),
		servingKey:        in("apiserver.key"),
		serviceAccountKey: in("service-account.key"),
		tokens:            in("tokens.csv"),
		auditPolicy:       in("audit-policy.yaml"),
		kubeconfig:        in("admin.kubeconfig"),
	}
}

// Tests search the request bodies for leaked secrets; the responses only repeat them.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Request
`

const kubeconfigTemplate = `apiVersion: v1
kind: Config
current-context: admin
clusters:
  - name: test
    cluster:
      server: https://127.0.0.1:%d
      certificate-authority-data: %s
users:
  - name: admin
    user:
      token: %s
contexts:
  - name: admin
    context:
      cluster: test
      user: admin
`

// prepare writes the missing files. Keys and the token of the administrator are kept over restarts, because clients use
// them.
func (f files) prepare(port int) error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	// The token is written last, so if its file exists, the other secrets exist too.
	if _, err := os.Stat(f.tokens); os.IsNotExist(err) {
		if err := f.generateSecrets(); err != nil {
			return err
		}
	}
	tokens, err := os.ReadFile(f.tokens)
	if err != nil {
		return err
	}
	var token string
	if _, err := fmt.Sscanf(string(tokens), "%32s", &token); err != nil {
		return fmt.Errorf("%s: %w", f.tokens, err)
	}
	ca, err := os.ReadFile(f.caCert)
	if err != nil {
		return err
	}
	kubeconfig := fmt.Sprintf(kubeconfigTemplate, port, base64.StdEncoding.EncodeToString(ca), token)
	for path, content := range map[string]string{
		f.auditPolicy: auditPolicy,
		f.kubeconfig:  kubeconfig,
		f.port:        strconv.Itoa(port),
	} {
		if err := replaceFile(path, []byte(content)); err != nil {
			return err
		}
	}
	return nil
}

func (f files) generateSecrets() error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "purlin-test-ca"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(10, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	servingKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serving := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{"localhost", "kubernetes.default.svc"},
	}
	serviceAccountKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeCertificate(f.caCert, ca, ca, &caKey.PublicKey, caKey); err != nil {
		return err
	}
	if err := writeCertificate(f.servingCert, serving, ca, &servingKey.PublicKey, caKey); err != nil {
		return err
	}
	if err := writeKey(f.servingKey, servingKey); err != nil {
		return err
	}
	if err := writeKey(f.serviceAccountKey, serviceAccountKey); err != nil {
		return err
	}
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return err
	}
	return replaceFile(f.tokens, fmt.Appendf(nil, "%x,admin,admin,system:masters\n", token))
}

func writeCertificate(path string, certificate, issuer *x509.Certificate, key *ecdsa.PublicKey, issuerKey *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, certificate, issuer, key, issuerKey)
	if err != nil {
		return err
	}
	return replaceFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return replaceFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

// replaceFile replaces a file atomically, because clients read the kubeconfig while the server restarts.
func replaceFile(path string, content []byte) error {
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
