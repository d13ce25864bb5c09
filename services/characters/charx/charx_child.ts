/** Reads CHARX files in the sandbox. */
import { serveSandbox } from "../../platform/sandbox/child.ts";
import { RemoteFile } from "../../platform/sandbox/remote_file.ts";
import { type CharxResponse, readCharxFile, toFailure } from "./charx_reader.ts";

/** A job, which reads the file by the function `file`. */
export interface CharxRequest {
  sizeBytes: number;
}

await serveSandbox("charx_child", {
  async run(value, _bytes, host) {
    try {
      return await readCharxFile(new RemoteFile(host, (value as CharxRequest).sizeBytes));
    } catch (error) {
      return { value: { failure: toFailure(error) } satisfies CharxResponse };
    }
  },
});
