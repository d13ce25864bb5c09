/** API calls for prompts and resources of tool servers. */
import type { ApiClient } from "./client.ts";

/** A prompt or a resource of a server. */
export interface ServerText {
  kind: "prompt" | "resource";
  serverId: string;
  serverName: string;
  /** Name of the prompt, or address of the resource. */
  id: string;
  title: string;
  description?: string;
  /** Of a prompt. */
  arguments: { name: string; description?: string; required: boolean }[];
}

interface Server {
  id: string;
  name: string;
  state: string;
  prompts?: boolean;
  resources?: boolean;
}
interface Prompt {
  name: string;
  title?: string;
  description?: string;
  arguments: ServerText["arguments"];
}
interface Resource {
  uri: string;
  name: string;
  description?: string;
}

async function json<T>(client: ApiClient, method: string, path: string, body?: unknown): Promise<T> {
  return await (await client.send(method, path, { body })).json() as T;
}

/** Lists the servers that offer prompts or resources now. @throws {ApiError} */
export async function listTextServers(client: ApiClient): Promise<Server[]> {
  const servers = await json<Server[]>(client, "GET", "/api/tools/servers");
  return servers.filter(({ state, prompts, resources }) => state === "ready" && (prompts || resources));
}

/** Lists what all servers offer. @throws {ApiError} */
export async function listServerTexts(client: ApiClient): Promise<ServerText[]> {
  const lists = (await listTextServers(client)).map(async ({ id, name, prompts, resources }) => {
    const path = `/api/tools/servers/${encodeURIComponent(id)}`;
    const [foundPrompts, foundResources] = await Promise.all([
      prompts ? json<Prompt[]>(client, "GET", `${path}/prompts`) : [],
      resources ? json<Resource[]>(client, "GET", `${path}/resources`) : [],
    ]);
    const of = { serverId: id, serverName: name };
    return [
      ...foundPrompts.map((prompt): ServerText => ({
        ...of,
        kind: "prompt",
        id: prompt.name,
        title: prompt.title ?? prompt.name,
        description: prompt.description,
        arguments: prompt.arguments,
      })),
      ...foundResources.map((resource): ServerText => ({
        ...of,
        kind: "resource",
        id: resource.uri,
        title: resource.name,
        description: resource.description,
        arguments: [],
      })),
    ];
  });
  return (await Promise.all(lists)).flat();
}

/** Returns the calls for one server. They throw `ApiError`. */
export function toolTextsApi(client: ApiClient, serverId: string) {
  const path = `/api/tools/servers/${encodeURIComponent(serverId)}`;
  return {
    getPrompt: (name: string, args: Record<string, string>) =>
      json<{ text: string }>(client, "POST", `${path}/prompts/${encodeURIComponent(name)}`, { arguments: args }),
    readResource: (uri: string) =>
      json<{ name: string; content_type: string; text: string }>(client, "POST", `${path}/resources/read`, { uri }),
  };
}
