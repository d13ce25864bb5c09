/** Writes Debian packages of the executable, with the systemd unit and the scripts in packaging/debian. Needs dpkg-deb. */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";

/** What a package is made of. */
export interface DebianPackage {
  /** Path of the executable. */
  executable: string;
  /** `"amd64"` or `"arm64"` */
  architecture: string;
  /** Of the program, such as `"1.3.0-rc.1"`. */
  version: string;
  /** Page of the source. */
  home: string;
  /** Day of the release, such as `"2026-11-20"`. */
  day: string;
  /** Text of licences.txt. */
  notices: string;
  /** Path of the package. */
  path: string;
  /** One of dpkg-deb's; a lower level is faster. */
  compression?: { method: "xz" | "gzip"; level: number };
}

/** Executables that are packed, by Debian's name of the architecture. The package is `<name>.deb`. */
export const DEBIAN_EXECUTABLES: Readonly<Record<string, string>> = {
  amd64: "parlor-linux-x64",
  arm64: "parlor-linux-arm64",
};

const ROOT = new URL("../", import.meta.url);
const MAINTAINER = "The Parlor authors <parlor@packages.invalid>";
/** The oldest C library that Deno's runtime takes: its newest symbol is GLIBC_2.27. */
const DEPENDS = "adduser, init-system-helpers (>= 1.52), libc6 (>= 2.27), libgcc-s1";

/** Returns the version as Debian sorts it: a prerelease is older than its release. */
function toDebianVersion(version: string): string {
  return version.replace("-", "~");
}

/** Returns the unit of the package. @param source Text of packaging/systemd/parlor.service. */
function formatDebianUnit(source: string): string {
  const text = source.replace(/^ExecStart=\/usr\/local\/bin\/parlor$/m, "ExecStart=/usr/bin/parlor")
    // A user that exists can own a folder for backups.
    .replace(/^DynamicUser=yes$/m, "User=parlor\nGroup=parlor");
  if (!/^ExecStart=\/usr\/bin\/parlor$[^]*^User=parlor$/m.test(text)) {
    throw new Error("Can't write the unit: packaging/systemd/parlor.service doesn't have the expected form");
  }
  return text;
}

/** Writes a package. @throws {Error} with the output of dpkg-deb. */
export async function writeDebianPackage(source: DebianPackage): Promise<void> {
  const read = (path: string) => Deno.readTextFile(new URL(path, ROOT));
  const { version, architecture, home, day, path, compression = { method: "xz", level: 6 } } = source;
  const [, license] = /^(Copyright .*\n[^]*)$/m.exec(await read("LICENSE"))!;
  const indented = license!.trim().split("\n").map((line) => line === "" ? " ." : ` ${line}`).join("\n");
  const files: Record<string, string | Uint8Array> = {
    "usr/bin/parlor": await Deno.readFile(source.executable),
    "usr/lib/systemd/system/parlor.service": formatDebianUnit(await read("packaging/systemd/parlor.service")),
    "usr/share/doc/parlor/copyright": `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Parlor
Source: ${home}
Comment: licences.txt.gz has the licenses of the software inside, and "parlor licenses" prints them.

Files: *
Copyright: ${/^Copyright \(c\) (.*)$/m.exec(license!)![1]}
License: MIT
${indented.split("\n").slice(2).join("\n")}
`,
    "usr/share/doc/parlor/changelog.gz": gzip(`parlor (${toDebianVersion(version)}) unstable; urgency=medium

  * ${home}/releases/tag/v${version}

 -- ${MAINTAINER}  ${new Date(day).toUTCString().replace("GMT", "+0000")}
`),
    "usr/share/doc/parlor/licences.txt.gz": gzip(source.notices),
    // Deno's runtime has its own.
    "usr/share/lintian/overrides/parlor": "parlor: embedded-library lcms2 [usr/bin/parlor]\n" +
      "parlor: embedded-library zlib [usr/bin/parlor]\n",
  };
  const sizeBytes = Object.values(files).reduce((sum, content) => sum + content.length, 0);
  const control: Record<string, string> = {
    control: `Package: parlor
Version: ${toDebianVersion(version)}
Architecture: ${architecture}
Maintainer: ${MAINTAINER}
Installed-Size: ${Math.ceil(sizeBytes / 1024)}
Depends: ${DEPENDS}
Section: net
Priority: optional
Homepage: ${home}
Description: self-hosted chat for language models
 Parlor is a server with a page for chats with language models and characters,
 on this machine or at a provider. It listens on 127.0.0.1:8787 and keeps its
 data in /var/lib/parlor.
`,
    md5sums: Object.entries(files).map(([name, content]) =>
      `${createHash("md5").update(content).digest("hex")}  ${name}\n`
    ).join(""),
  };
  const folder = await Deno.makeTempDir({ prefix: "parlor-deb-" });
  try {
    const write = async (name: string, content: string | Uint8Array, mode: number) => {
      const to = `${folder}/${name}`;
      for (let at = folder.length; at > 0; at = to.indexOf("/", at + 1)) {
        const above = to.slice(0, at);
        await Deno.mkdir(above, { recursive: true });
        await Deno.chmod(above, 0o755);
      }
      await Deno.writeFile(to, typeof content === "string" ? new TextEncoder().encode(content) : content);
      await Deno.chmod(to, mode);
    };
    for (const [name, content] of Object.entries(files)) {
      await write(name, content, name.startsWith("usr/bin/") ? 0o755 : 0o644);
    }
    for (const [name, content] of Object.entries(control)) await write(`DEBIAN/${name}`, content, 0o644);
    for (const name of ["postinst", "prerm", "postrm"]) {
      await write(`DEBIAN/${name}`, await read(`packaging/debian/${name}`), 0o755);
    }
    const { success, stderr } = await new Deno.Command("dpkg-deb", {
      args: ["--root-owner-group", `-Z${compression.method}`, `-z${compression.level}`, "--build", folder, path],
      stdout: "null",
    }).output();
    if (!success) throw new Error(`dpkg-deb failed: ${new TextDecoder().decode(stderr)}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Without the time, so that the same content gives the same file. */
function gzip(text: string): Uint8Array {
  return gzipSync(text, { level: 9 });
}
