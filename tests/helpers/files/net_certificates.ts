/** Certificates for tests, created with openssl on demand. */
import { join } from "node:path";

export interface Certificate {
  cert: string;
  key: string;
}

export interface CertificateOptions {
  /** The one name in the certificate. */
  name: string;
  /** `"self"` instead of the authority. */
  signedBy?: "authority" | "self";
  /** Days from now until it expires, 2 by default. */
  days?: number;
  /** Expired years ago. */
  isExpired?: boolean;
}

export interface Authority extends AsyncDisposable {
  /** PEM of the authority itself, to be trusted by the client under test. */
  readonly cert: string;
  issue(options: CertificateOptions): Promise<Certificate>;
}

const CONFIG = `
[ca]
default_ca = default
[default]
database = index.txt
new_certs_dir = .
default_md = sha256
rand_serial = yes
unique_subject = no
policy = policy
[policy]
commonName = supplied
`;

/** Opens a certificate authority in a temporary folder, which is removed with it. */
export async function openAuthority(): Promise<Authority> {
  const folder = await Deno.makeTempDir();
  const openssl = async (...args: string[]) => {
    const { success, stderr } = await new Deno.Command("openssl", {
      args,
      cwd: folder,
      stdout: "null",
      stderr: "piped",
    }).output();
    if (!success) throw new Error(`openssl ${args[0]} failed: ${new TextDecoder().decode(stderr)}`);
  };
  const read = (name: string) => Deno.readTextFile(join(folder, name));
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  await Deno.writeTextFile(join(folder, "ca.cnf"), CONFIG);
  await Deno.writeTextFile(join(folder, "index.txt"), "");
  await openssl(
    "req",
    "-x509",
    ...newKey,
    "-keyout",
    "ca.key",
    "-out",
    "ca.pem",
    "-days",
    "2",
    "-subj",
    "/CN=Test authority",
  );
  return {
    cert: await read("ca.pem"),
    async issue({ name, signedBy = "authority", days = 2, isExpired = false }) {
      const altName = `subjectAltName=DNS:${name}`;
      if (signedBy === "self") {
        const self = ["-x509", "-days", `${days}`, "-subj", `/CN=${name}`, "-addext", altName, "-out", "leaf.pem"];
        await openssl("req", ...newKey, "-keyout", "leaf.key", ...self);
      } else {
        await openssl("req", ...newKey, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", `/CN=${name}`);
        await Deno.writeTextFile(join(folder, "leaf.ext"), altName);
        const dates = isExpired
          ? ["-startdate", "20200101000000Z", "-enddate", "20210101000000Z"]
          : ["-days", `${days}`];
        const files = [
          "-cert",
          "ca.pem",
          "-keyfile",
          "ca.key",
          "-in",
          "leaf.csr",
          "-out",
          "leaf.pem",
          "-extfile",
          "leaf.ext",
        ];
        await openssl("ca", "-batch", "-notext", "-config", "ca.cnf", ...files, ...dates);
      }
      return { cert: await read("leaf.pem"), key: await read("leaf.key") };
    },
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}
