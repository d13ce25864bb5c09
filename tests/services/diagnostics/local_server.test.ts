import { expect, test } from "vitest";
import { findPublicUrl } from "../../../services/diagnostics/local_server.ts";
import { makeCertificate } from "../../helpers/files/tls_certificate.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";

const plain = { host: "127.0.0.1", port: 8787, tlsCert: null, allowedHosts: [], trustedProxies: [] };

test.each([
  [plain, undefined],
  [{ ...plain, allowedHosts: ["chat.example.org"] }, undefined],
  [{ ...plain, trustedProxies: ["127.0.0.1"] }, undefined],
  [{ ...plain, trustedProxies: ["127.0.0.1"], allowedHosts: ["*.example.org", "10.0.0.2"] }, undefined],
  [
    { ...plain, trustedProxies: ["172.18.0.0/16"], allowedHosts: ["10.0.0.2", "chat.example.org"] },
    "https://chat.example.org",
  ],
])("the address behind a proxy is its first allowed name: %j", (config, expected) => {
  expect(findPublicUrl(config)).toBe(expected);
});

test("the address of a server with a certificate has a name of the certificate", async () => {
  await using folder = await tempFolder();
  const path = folder.file("cert.pem");
  await Deno.writeTextFile(path, (await makeCertificate()).cert);
  const config = { ...plain, tlsCert: path, allowedHosts: ["chat.example.org"] };
  expect(findPublicUrl(config)).toBe("https://chat.example.org:8787");
});
