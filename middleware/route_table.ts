/** What the middleware needs to know about routes before the router runs: patterns, bodies, methods. */

/** One route of the API document. */
export interface RouteFacts {
  /** In upper case. */
  method: string;
  /** As declared: `"/api/connections/{id}"`. */
  pattern: string;
  /** Content types that its body may have; empty if it accepts no body. */
  bodyTypes: readonly string[];
  isBodyRequired: boolean;
  bodyLimitBytes: number;
  /** Whether the handler reads the body as a stream; otherwise the middleware reads the whole body first. */
  isBodyStreamed: boolean;
  /** Whether the handler gets JSON longer than `MAX_PARSED_BYTES` as `UnparsedJson`, because it may come from strangers. */
  passesLongJson?: boolean;
}

/** All routes, by path. */
export interface RouteTable {
  /** Returns the route of a request. HEAD uses the route of GET. */
  find(method: string, path: string): RouteFacts | undefined;
  /** Returns the methods of a path, with HEAD if it has GET; empty for an unknown path. */
  listMethods(path: string): string[];
  /** Returns the pattern of a path for any method. */
  findPattern(path: string): string | undefined;
}

/** Creates the table. Fixed segments take precedence over `{parameters}`, as in the router. */
export function createRouteTable(routes: readonly RouteFacts[]): RouteTable {
  const byLength = new Map<number, { segments: string[]; route: RouteFacts }[]>();
  for (const route of routes) {
    const segments = route.pattern.split("/");
    const list = byLength.get(segments.length) ?? [];
    list.push({ segments, route });
    byLength.set(segments.length, list);
  }
  for (const list of byLength.values()) {
    list.sort((a, b) => countParameters(a.segments) - countParameters(b.segments));
  }

  function findMatches(path: string): RouteFacts[] {
    const segments = path.split("/");
    const candidates = byLength.get(segments.length) ?? [];
    return candidates.filter(({ segments: pattern }) => {
      return pattern.every((part, i) => part.startsWith("{") ? segments[i] !== "" : part === segments[i]);
    }).map(({ route }) => route);
  }

  return {
    find(method, path) {
      const routeMethod = method === "HEAD" ? "GET" : method;
      return findMatches(path).find((route) => route.method === routeMethod);
    },
    listMethods(path) {
      const methods = new Set(findMatches(path).map((route) => route.method));
      if (methods.has("GET")) methods.add("HEAD");
      return [...methods].sort();
    },
    findPattern(path) {
      return findMatches(path)[0]?.pattern;
    },
  };
}

function countParameters(segments: string[]): number {
  return segments.filter((segment) => segment.startsWith("{")).length;
}
