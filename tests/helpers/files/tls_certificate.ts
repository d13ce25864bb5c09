/** A new self-signed certificate for localhost. */

// No certificate authority: Deno's TLS refuses those as a server's own certificate.
const OPENSSL_CONFIG = `
[req]
distinguished_name = name
x509_extensions = leaf
prompt = no
[name]
CN = localhost
[leaf]
basicConstraints = critical,CA:FALSE
subjectAltName = DNS:localhost,IP:127.0.0.1
`;

/** Creates a certificate and its key, both in PEM format. */
export async function makeCertificate(): Promise<{ cert: string; key: string }> {
  const folder = await Deno.makeTempDir({ prefix: "parlor-test-" });
  try {
    await Deno.writeTextFile(`${folder}/config`, OPENSSL_CONFIG);
    const { success, stderr } = await new Deno.Command("openssl", {
      args: [
        ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split(" "),
        ...["-config", `${folder}/config`, "-keyout", `${folder}/key`, "-out", `${folder}/cert`],
      ],
      stdout: "null",
      stderr: "piped",
    }).output();
    if (!success) throw new Error(`openssl made no certificate: ${new TextDecoder().decode(stderr)}`);
    return { cert: await Deno.readTextFile(`${folder}/cert`), key: await Deno.readTextFile(`${folder}/key`) };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
