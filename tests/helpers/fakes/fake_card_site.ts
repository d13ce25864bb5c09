/** A fake card site with a switch per fault. Other paths serve files that tests set. */
import { PUBLIC } from "../network/loopback_guard.ts";

/** A character of the site. */
export interface SiteNode {
  fullPath: string;
  name: string;
  [field: string]: unknown;
}

/** The fake site. */
export interface FakeCardSite extends AsyncDisposable {
  readonly url: string;
  /** Path and query of every request, in order. */
  readonly asked: string[];
  nodes: SiteNode[];
  /** Files by path. */
  readonly files: Map<string, Uint8Array<ArrayBuffer> | ((request: Request) => Response | Promise<Response>)>;
  /** `data` around the results, or the older form without. */
  isOldForm: boolean;
}

/** Starts the fake site on the loopback address that counts as public. */
export function openFakeCardSite(): FakeCardSite {
  const asked: string[] = [];
  const site: Omit<FakeCardSite, "url" | typeof Symbol.asyncDispose> = {
    asked,
    nodes: [],
    files: new Map(),
    isOldForm: false,
  };
  const server = Deno.serve({ hostname: PUBLIC, port: 0, onListen: () => {} }, async (request) => {
    const { pathname, search, searchParams } = new URL(request.url);
    asked.push(pathname + search);
    const file = site.files.get(pathname);
    if (typeof file === "function") return await file(request);
    if (file !== undefined) return new Response(file);
    if (pathname === "/search") return Response.json(answerOf(site, searchParams));
    const node = site.nodes.find(({ fullPath }) => pathname === `/api/characters/${fullPath}`);
    if (node === undefined) return Response.json({ message: "not found" }, { status: 404 });
    const definition = searchParams.get("full") === "true" ? node.definition : null;
    return Response.json({ node: { ...node, definition } });
  });
  return Object.assign(site, {
    url: `http://${PUBLIC}:${server.addr.port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  });
}

function answerOf({ nodes, isOldForm }: Pick<FakeCardSite, "nodes" | "isOldForm">, query: URLSearchParams): unknown {
  const [first, page] = [Number(query.get("first")), Number(query.get("page"))];
  const shown = nodes.slice((page - 1) * first, page * first).map(({ definition: _, ...node }) => node);
  return isOldForm ? { nodes: shown } : { data: { count: nodes.length, nodes: shown, page } };
}
