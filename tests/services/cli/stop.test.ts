import { expect, test } from "vitest";
import { runStop } from "../../../services/cli/stop.ts";
import { startChildServer } from "../../helpers/app/child_server.ts";
import { testConfig } from "../../helpers/app/test_app.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { runParlor } from "../../helpers/processes/parlor_command.ts";

const ignore = () => {};

/** Each command and each server is a start of the whole program. */
const SLOW_MS = 300_000;

test("parlor stop ends the server of the data folder, also behind a proxy, and says so when none runs", async () => {
  await using folder = await tempFolder();
  const stop = () => runParlor(["stop", "--data-dir", folder.path]);
  const noneRuns = { code: 3, stdout: `No server runs on "${folder.path}"\n`, stderr: "" };
  expect(await stop()).toEqual(noneRuns);
  // Its own options, such as the port, are in the folder.
  await using server = await startChildServer({ dataDir: folder.path, args: ["--trusted-proxies", "127.0.0.1"] });
  // On a busy machine the first question may get no answer in time, and the server has ended before the next one.
  const stopped = expect.stringMatching(/^(A process uses .* Waiting\n)?(The server has stopped|It has ended)\n$/);
  expect(await stop()).toEqual({ code: 0, stdout: stopped, stderr: "" });
  expect((await server.kill("SIGTERM")).code).toBe(0); // It has ended by itself: the signal finds no process.
  expect(server.logs.join("\n")).toContain("Asked to stop by parlor stop");
  expect(await stop()).toEqual(noneRuns);
}, SLOW_MS);

test("a killed server isn't running, whatever answers at its address now", async () => {
  await using folder = await tempFolder();
  const server = await startChildServer({ dataDir: folder.path });
  await server.kill();
  let requests = 0;
  await using _other = Deno.serve({ port: Number(new URL(server.url).port), onListen: ignore }, () => {
    requests++;
    return new Response("Hello");
  });
  const said: string[] = [];
  expect(await runStop(testConfig(folder.path), (text) => said.push(text))).toBe(3);
  expect([said, requests]).toEqual([[`No server runs on "${folder.path}"`], 0]);
}, SLOW_MS);

test("a server that doesn't stop, or doesn't respond, and another program at its address are told apart", async () => {
  await using folder = await tempFolder();
  await using server = await startChildServer({ dataDir: folder.path });
  let answer = () => Response.json({ pid: server.pid }, { status: 202 });
  await using other = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: ignore }, () => answer());
  const path = `${folder.path}/server.json`;
  const saved = JSON.parse(await Deno.readTextFile(path));
  const config = testConfig(folder.path);
  const pretend = (port: number) => Deno.writeTextFile(path, JSON.stringify({ ...saved, port }));

  await pretend(other.addr.port);
  await expect(runStop(config, ignore, 0)).rejects.toThrow(`its process ${server.pid} still runs after 0 s`);
  answer = () => new Response("Hello");
  await expect(runStop(config, ignore)).rejects.toThrow("answered with status 200: it's another program");
  answer = () => Response.json({ error: {} }, { status: 404 });
  await expect(runStop(config, ignore)).rejects.toThrow("answered with status 404: it's another program");
  await pretend(9);
  const said: string[] = [];
  await expect(runStop(config, (text) => said.push(text), 1)).rejects.toThrow("no server of it responded within");
  expect(said).toEqual([`A process uses "${folder.path}", but no server of it responds yet. Waiting`]);

  // A server that is starting is waited for.
  const stopping = runStop(config, async (text) => {
    said.push(text);
    await pretend(saved.port);
  });
  expect(await stopping).toBe(0);
  expect(said.slice(1)).toEqual([said[0], expect.stringMatching(/^(The server has stopped|It has ended)$/)]);
}, SLOW_MS);
