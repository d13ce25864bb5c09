/** A fake yt-dlp script: records its call, then behaves as the URL says. */

/** A script in a folder of its own. */
export interface FakeYtDlp extends AsyncDisposable {
  readonly path: string;
  /** Arguments, environment and folder of the last call. */
  lastCall(): Promise<{ args: string[]; env: Record<string, string>; cwd: string }>;
  /** Continues a slow download. */
  goOn(): Promise<void>;
  /** Process ids of children it left running. */
  children(): Promise<number[]>;
}

/** Writes the script. @param version The version that it prints. */
export async function openFakeYtDlp(version = "2026.08.19"): Promise<FakeYtDlp> {
  const folder = await Deno.makeTempDir({ prefix: "parlor-yt-dlp-" });
  const path = `${folder}/yt-dlp`;
  await Deno.writeTextFile(`${folder}/sample.wav`, "");
  const script = `#!/usr/bin/env bash
here=${folder}
for last; do :; done
if [ "$last" = --version ]; then echo "${version}"; exit 0; fi
printf '%s\\0' "$@" >"$here/args"; env -0 >"$here/env"; pwd >"$here/cwd"
wav() { { printf 'RIFF\\x24\\x77\\x01\\x00WAVEfmt \\x10\\x00\\x00\\x00\\x01\\x00\\x01\\x00\\xc0\\x5d\\x00\\x00\\x80\\xbb\\x00\\x00\\x02\\x00\\x10\\x00data\\x00\\x77\\x01\\x00'; head -c 96000 /dev/zero; } >"$1"; }
case $last in
  */good*) wav "$PWD/sample.wav"; echo "$PWD/sample.wav" ;;
  */slow*)
    echo "progress 1024 NA 4000.5"; echo "progress 2000 4000 NA"
    while [ ! -e "$here/go" ]; do sleep 0.05; done
    wav "$PWD/sample.wav"; echo "progress 4000 4000 NA"; echo "$PWD/sample.wav" ;;
  */filtered*) ;;
  */unsupported*) echo "ERROR: Unsupported URL: secret-path" >&2; exit 1 ;;
  */elsewhere*) wav "$here/out.wav"; echo "$here/out.wav" ;;
  */link*) ln -s /etc/hostname "$PWD/sample.wav"; echo "$PWD/sample.wav" ;;
  */notaudio*) echo "[Desktop Entry] and some more text that is long enough to be looked at as a head" >"$PWD/sample.wav"; echo "$PWD/sample.wav" ;;
  */two*) wav "$PWD/sample.wav"; wav "$PWD/b.wav"; printf '%s\\n' "$PWD/sample.wav" "$PWD/b.wav" ;;
  */desktop*) wav "$PWD/sample.desktop"; echo "$PWD/sample.desktop" ;;
  */playlist*) for n in $(seq 500); do : >"$PWD/$n.wav"; echo "$PWD/$n.wav"; done ;;
  */flood*) head -c 3000000 /dev/zero | tr '\\0' x ;;
  */big*) while :; do head -c 50000000 /dev/zero >>"$PWD/fill"; done ;;
  */hang*) trap '' TERM INT; sleep 300 & echo $! >>"$here/children"; sleep 300 & echo $! >>"$here/children"; wait; wait; sleep 300 ;;
esac
`;
  await Deno.writeTextFile(path, script, { mode: 0o755 });
  const list = async (name: string) => (await Deno.readTextFile(`${folder}/${name}`)).split("\0").slice(0, -1);
  return {
    path,
    async lastCall() {
      const env = Object.fromEntries((await list("env")).map((line) => line.split(/=([^]*)/, 2)));
      return { args: await list("args"), env, cwd: (await Deno.readTextFile(`${folder}/cwd`)).trim() };
    },
    goOn: () => Deno.writeTextFile(`${folder}/go`, ""),
    async children() {
      const text = await Deno.readTextFile(`${folder}/children`).catch(() => "");
      return text.split("\n").filter(Boolean).map(Number);
    },
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}
