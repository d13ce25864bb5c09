/** The macros that cards, lorebooks and presets may contain; services/prompts/macros expands them. */

/** Names of all macros that have a value in Parlor, in lower case. */
export const MACRO_NAMES: readonly string[] = [
  ...["//", "addglobalvar", "addvar", "allchatrange", "banned", "char", "char_version", "charcreatornotes"],
  ...["chardepthprompt", "chardescription", "charfirstmessage", "charifnotgroup", "charinstruction", "charjailbreak"],
  ...["charpersonality", "charprompt", "charscenario", "charversion", "chatseparator", "chatstart", "comment"],
  ...["creatornotes", "date", "datetimeformat", "decglobalvar", "decvar", "deleteglobalvar", "deletevar"],
  ...["description", "else", "exampleseparator", "flushglobalvar", "flushvar", "getglobalvar", "getglobalvarindex"],
  ...["getglobalvarkey", "getvar", "getvarindex", "getvarkey", "globalvarexists", "greeting", "group", "groupnotmuted"],
  ...["hasextension", "hasglobalvar", "hasvar", "hidden_key", "idle_duration", "idleduration", "if", "incglobalvar"],
  ...["incvar", "input", "instructassistantprefix", "instructassistantsuffix", "instructfirstassistantprefix"],
  ...[
    "instructfirstinput",
    "instructfirstoutputprefix",
    "instructfirstuserprefix",
    "instructinput",
    "instructlastassistantprefix",
  ],
  ...["instructlastinput", "instructlastoutputprefix", "instructlastuserprefix", "instructoutput", "instructseparator"],
  ...[
    "instructstop",
    "instructstorystringprefix",
    "instructstorystringsuffix",
    "instructsystem",
    "instructsysteminstructionprefix",
  ],
  ...[
    "instructsystemprefix",
    "instructsystemprompt",
    "instructsystemsuffix",
    "instructuserfiller",
    "instructuserprefix",
  ],
  ...[
    "instructusersuffix",
    "ismobile",
    "isodate",
    "isotime",
    "lastcharmessage",
    "lastchatmessage",
    "lastgenerationtype",
  ],
  ...["lastmessage", "lastmessageid", "lastusermessage", "maxcontext", "maxcontexttokens", "maxprompt"],
  ...["maxprompttokens", "maxresponse", "maxresponsetokens", "mesexamples", "mesexamplesraw", "model", "newline"],
  ...["noop", "notchar", "original", "outlet", "persona", "personality", "pick", "random", "reverse", "roll"],
  ...["scenario", "setglobalvar", "setglobalvarindex", "setglobalvarkey", "setvar", "setvarindex", "setvarkey"],
  ...["space", "summary", "systemprompt", "time", "timediff", "trim", "user", "varexists", "version", "weekday"],
];

const KNOWN = new Set(MACRO_NAMES);
/** The name of a macro after its flags. Ends of blocks and variables have none. */
const NAME = /\{\{[!?~#>\s]{0,20}([a-z][\w-]{0,100})/gi;

/** Returns the names of the macros in texts that Parlor doesn't have, in lower case. */
export function findUnknownMacros(texts: Iterable<string>): string[] {
  const found = new Set<string>();
  for (const text of texts) {
    for (const [, name] of text.matchAll(NAME)) {
      const key = name!.toLowerCase();
      // `{{time_UTC+2}}` is a form of `{{time}}`.
      if (!KNOWN.has(key) && key !== "time_utc") found.add(key);
    }
  }
  return [...found].sort();
}
