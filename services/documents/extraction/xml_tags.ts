/**
 * Reads XML as a stream of tags: memory and time grow with its length, however deep it is nested. Entities that a file
 * declares aren't expanded, and nothing outside the file is read.
 */
import { Parser } from "htmlparser2";

/** Attributes by their names without namespaces. */
export type XmlAttributes = Record<string, string | undefined>;

/** What to do with the parts of a file. Names are lower case and have no namespaces. */
export interface XmlHandlers {
  open?(name: string, attributes: XmlAttributes): void;
  /** @param name The innermost open element. */
  text?(text: string, name: string): void;
  close?(name: string): void;
}

/** Reads a file. */
export function readXmlTags(xml: string, { open, text, close }: XmlHandlers): void {
  const stack: string[] = [];
  const parser = new Parser({
    onopentag(name, attributes) {
      stack.push(toLocalName(name));
      open?.(stack.at(-1)!, toLocalNames(attributes));
    },
    ontext: (data) => text?.(data, stack.at(-1) ?? ""),
    onclosetag() {
      const name = stack.pop();
      if (name !== undefined) close?.(name);
    },
  }, { xmlMode: true, decodeEntities: true });
  parser.write(xml);
  parser.end();
}

function toLocalName(name: string): string {
  return name.slice(name.indexOf(":") + 1).toLowerCase();
}

function toLocalNames(attributes: Record<string, string>): XmlAttributes {
  const local: XmlAttributes = Object.create(null);
  for (const name in attributes) local[toLocalName(name)] = attributes[name];
  return local;
}
