/**
 * An object that is built in a variable and handed on says its type, with `satisfies` or an annotation, if it sets
 * optional fields. TypeScript looks for unknown fields only where a literal meets its type, so without it a renamed
 * optional field would be dropped in silence.
 *
 * @see https://www.typescriptlang.org/docs/handbook/2/objects.html#excess-property-checks
 * @slow The types of every source file are found.
 */
import { join, resolve } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";
import { tempFolder } from "./helpers/files/storage_folder.ts";

const ROOT = resolve(import.meta.dirname!, "..");
const FOLDERS = ["services", "routes", "middleware", "static/src"];

async function* listSources(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) yield* listSources(join(folder, name));
    else if (/\.tsx?$/.test(name)) yield join(folder, name);
  }
}

/** Reads files with the types of Deno and the compiler options of deno.json that change types. */
async function openProgram(files: string[]): Promise<ts.Program> {
  await using folder = await tempFolder();
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["types"], stdout: "piped" }).output();
  const denoTypes = join(folder.path, "deno.d.ts");
  await Deno.writeFile(denoTypes, stdout);
  const program = ts.createProgram([...files, denoTypes], {
    strict: true,
    noUncheckedIndexedAccess: true,
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    allowImportingTsExtensions: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    jsx: ts.JsxEmit.ReactJSX,
    jsxImportSource: "preact",
    lib: ["lib.esnext.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts", "lib.dom.asynciterable.d.ts"],
  });
  program.getTypeChecker();
  return program;
}

/** Returns the object literals that an expression may evaluate to, without those that say their type. */
function listLiterals(node: ts.Expression): ts.ObjectLiteralExpression[] {
  if (ts.isObjectLiteralExpression(node)) return [node];
  if (ts.isParenthesizedExpression(node)) return listLiterals(node.expression);
  if (ts.isConditionalExpression(node)) return [...listLiterals(node.whenTrue), ...listLiterals(node.whenFalse)];
  if (ts.isBinaryExpression(node)) return [...listLiterals(node.left), ...listLiterals(node.right)];
  return [];
}

/** Returns the object types that the value of a name is used as, if it's handed on there. */
function listTargets(checker: ts.TypeChecker, use: ts.Identifier): ts.Type[] {
  const getType = () => {
    if (!ts.isShorthandPropertyAssignment(use.parent)) return checker.getContextualType(use);
    const owner = checker.getContextualType(use.parent.parent);
    const field = owner && checker.getPropertyOfType(checker.getNonNullableType(owner), use.text);
    return field && checker.getTypeOfSymbolAtLocation(field, use);
  };
  const type = getType();
  const members = (each: ts.Type): ts.Type[] => each.isUnion() ? each.types.flatMap(members) : [each];
  const found = type === undefined ? [] : members(checker.getNonNullableType(type));
  const isClosed = ({ flags }: ts.Type) => (flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) !== 0;
  const isOpen = (each: ts.Type) =>
    (each.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown | ts.TypeFlags.TypeParameter)) !== 0 ||
    each.getStringIndexType() !== undefined;
  return found.some(isOpen) ? [] : found.filter(isClosed);
}

/** Lists the variables of a file that break the rule, as `path:line name`. */
function findUntyped(checker: ts.TypeChecker, file: ts.SourceFile): string[] {
  const variables = new Map<ts.Symbol, { name: ts.Identifier; literals: ts.ObjectLiteralExpression[] }>();
  const collect = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && !node.type && node.initializer) {
      const literals = listLiterals(node.initializer);
      const symbol = checker.getSymbolAtLocation(node.name);
      if (symbol !== undefined && literals.length > 0) variables.set(symbol, { name: node.name, literals });
    }
    ts.forEachChild(node, collect);
  };
  collect(file);
  const found = new Set<ts.Identifier>();
  const check = (node: ts.Node): void => {
    // The attributes of elements are HTML's; components take theirs with JSX, which looks for unknown ones itself.
    if (ts.isIdentifier(node) && !ts.isJsxSpreadAttribute(node.parent)) {
      const symbol = ts.isShorthandPropertyAssignment(node.parent)
        ? checker.getShorthandAssignmentValueSymbol(node.parent)
        : checker.getSymbolAtLocation(node);
      const variable = symbol && variables.get(symbol);
      if (variable !== undefined && node !== variable.name && !found.has(variable.name)) {
        const fields = listTargets(checker, node).flatMap((type) => checker.getPropertiesOfType(type));
        const known = new Set(fields.map(({ name }) => name));
        const optional = new Set(fields.filter(({ flags }) => flags & ts.SymbolFlags.Optional).map(({ name }) => name));
        const set = variable.literals.flatMap((each) => checker.getPropertiesOfType(checker.getTypeAtLocation(each)))
          .map(({ name }) => name);
        const missesOptional = [...optional].some((name) => !set.includes(name));
        const breaks = (name: string) => optional.has(name) || (missesOptional && !known.has(name));
        if (set.some(breaks)) found.add(variable.name);
      }
    }
    ts.forEachChild(node, check);
  };
  check(file);
  return [...found].map((name) =>
    `${file.fileName.replace(`${ROOT}/`, "")}:${file.getLineAndCharacterOfPosition(name.pos).line + 1} ${name.text}`
  );
}

/** A busy machine takes minutes to find all types. */
const LIMIT_MS = 600_000;

test("objects that are handed on through a variable say their type if they set optional fields", {
  timeout: LIMIT_MS,
}, async () => {
  await using folder = await tempFolder();
  const sample = join(folder.path, "sample.ts");
  await Deno.writeTextFile(
    sample,
    [
      "interface Scan { books: string[]; speaker?: string }",
      "declare function scan(input: Scan): void;",
      "declare function open(input: { lore?: Scan }): void;",
      'const renamed = { books: [], member: "Mara" };',
      "open({ lore: renamed });",
      'const lore = Math.random() > 0.5 ? undefined : { books: [], speaker: "Mara" };',
      "open({ lore });",
      'const spread = { speaker: "Mara" };',
      "scan({ books: [], ...spread });",
      'const typed = { books: [], speaker: "Mara" } satisfies Scan;',
      "scan(typed);",
      "const required = { books: [] };",
      "scan(required);",
      "JSON.stringify(required);",
    ].join("\n"),
  );
  const files = (await Promise.all(FOLDERS.map((path) => Array.fromAsync(listSources(join(ROOT, path)))))).flat();
  const program = await openProgram([...files, sample]);
  const checker = program.getTypeChecker();
  const find = (path: string) => findUntyped(checker, program.getSourceFile(path)!);
  expect(find(sample)).toEqual([`${sample}:4 renamed`, `${sample}:6 lore`, `${sample}:8 spread`]);
  expect(files.flatMap(find)).toEqual([]);
});
