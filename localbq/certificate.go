package localbq

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// certificates are an authority of an instance's own and the server certificate that it has signed.
type certificates struct {
	authority []byte // PEM
	pool      *x509.CertPool
	server    tls.Certificate
}

// certificateLife is how long they hold, from an hour before they are made: longer than any instance lives.
const certificateLife = 10 * 365 * 24 * time.Hour

// newCertificates makes an authority and a certificate for the loopback interface and for host.
func newCertificates(host string) (*certificates, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of a certificate authority: %w", err)
	}
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "local BigQuery"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate authority: %w", err)
	}
	c := &certificates{authority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pool: x509.NewCertPool()}
	c.pool.AppendCertsFromPEM(c.authority)
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of a server certificate: %w", err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: root.Subject, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(host); ip != nil {
		leaf.IPAddresses = append(leaf.IPAddresses, ip)
	} else if host != "" {
		leaf.DNSNames = append(leaf.DNSNames, host)
	}
	der, err = x509.CreateCertificate(rand.Reader, leaf, root, &serverKey.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("making a server certificate: %w", err)
	}
	c.server = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: serverKey}
	return c, nil
}
