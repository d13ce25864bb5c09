/** Fake SearXNG server with a switch per quirk in docs/protocols/searxng.md. */

/** Switches of the fake. */
export interface FakeSearxngSwitches {
  /** Results of each page; pages beyond have none. */
  pages: unknown[][];
  answers: unknown[];
  unresponsiveEngines: unknown[];
  /** `search.formats` in its settings.yml; others are 403. JSON isn't in the default list of the software. */
  formats: string[];
  /** Requests in JSON per hour before the limiter refuses with 429. */
  limit: number;
  /** Overrides the response. */
  answer: Response | undefined;
  /** Milliseconds until it responds. */
  delayMs: number;
}

/** A running fake server. */
export interface FakeSearxng extends AsyncDisposable {
  readonly origin: string;
  /** Parameters of each search. */
  readonly queries: Record<string, string>[];
  readonly headers: Headers[];
  readonly switches: FakeSearxngSwitches;
}

/** A result as the software writes it. */
export function searchResult(n: number, fields: Record<string, unknown> = {}) {
  const url = `https://example.org/${n}`;
  return {
    template: "default.html",
    url,
    title: `Result ${n}`,
    content: `Excerpt ${n}`,
    publishedDate: null,
    engine: "duckduckgo",
    parsed_url: ["https", "example.org", `/${n}`, "", "", ""],
    engines: ["duckduckgo"],
    positions: [n],
    score: 1 / n,
    category: "general",
    ...fields,
  };
}

const DEFAULTS: FakeSearxngSwitches = {
  pages: [[1, 2, 3].map((n) => searchResult(n))],
  answers: [],
  unresponsiveEngines: [],
  formats: ["html", "json"],
  limit: Infinity,
  answer: undefined,
  delayMs: 0,
};

/** Starts the fake server on a free port. */
export function openFakeSearxng(changes: Partial<FakeSearxngSwitches> = {}): FakeSearxng {
  const switches = { ...DEFAULTS, ...changes };
  const queries: Record<string, string>[] = [];
  const headers: Headers[] = [];
  const handle = async (request: Request): Promise<Response> => {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname !== "/search" && pathname !== "/") return createPage(404, "Page not found");
    const query = Object.fromEntries(searchParams);
    queries.push(query);
    headers.push(request.headers);
    const { pages, answers, unresponsiveEngines, formats, limit, answer, delayMs } = switches;
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    if (answer !== undefined) return answer;
    const format = query.format ?? "html";
    if (!formats.includes(format)) return createPage(403, "Forbidden");
    if (format === "html") return createPage(200, "SearXNG");
    if (queries.length > limit) return new Response("too many request in API_WINDOW", { status: 429 });
    if (!query.q) return Response.json({ error: "No query" }, { status: 400 });
    const results = pages[Number(query.pageno ?? "1") - 1] ?? [];
    return Response.json({
      query: query.q,
      number_of_results: 0,
      results,
      answers,
      corrections: [],
      infoboxes: [],
      suggestions: [],
      unresponsive_engines: unresponsiveEngines,
    });
  };
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {}, onError: () => new Response(null) },
    handle,
  );
  return {
    origin: `http://127.0.0.1:${server.addr.port}`,
    queries,
    headers,
    switches,
    async [Symbol.asyncDispose]() {
      await server.shutdown();
    },
  };
}

function createPage(status: number, title: string): Response {
  const html = `<!doctype html>\n<html lang=en>\n<title>${status} ${title}</title>\n<h1>${title}</h1>`;
  return new Response(html, { status, headers: { "content-type": "text/html; charset=utf-8" } });
}
