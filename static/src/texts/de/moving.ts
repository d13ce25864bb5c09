/** Moving in and out: imports, the export, backups that are asked for, licences. */
import type { moving as English } from "../en/moving.ts";
import { counter } from "../plural.ts";

const count = counter("de");

/** German. */
export const moving: typeof English = {
  moving: {
    title: "Import",
    intro:
      "Holen Sie herein, was ein anderes Programm hat, oder einen Export von Parlor. Nichts kommt zweimal, und nichts von hier wird überschrieben.",
    back: "Zurück zu den Daten",
    from: "Import aus SillyTavern, RisuAI, Agnai, ChatGPT, Open WebUI oder Parlor",
    start: "Importieren",
    startHint: "Chats, Figuren, Personas, Lorebooks und Presets anderer Programme, oder ein Export von Parlor.",
    chooseFile: "Datei wählen",
    otherFile: "Andere Datei wählen",
    dropHint: "Ein Zip, JSON, JSONL oder Figurenkarten. Sie lassen sich hier auch ablegen.",
    drop: "Datei ablegen, um sie zu importieren",
    folder: "Ein Ordner lässt sich nicht senden. Packen Sie ihn zuerst in ein Zip und wählen Sie das.",
    several: "Eine Datei auf einmal. Ein Zip kann viele enthalten; Karten dürfen zusammen kommen.",
    tooLarge: (limit: string) => `Die Datei ist größer, als dieser Server annimmt: höchstens ${limit}.`,
    files: (n: number) => count(n, { one: "Datei", other: "Dateien" }),
    kind: "Was es ist",
    kindUnknown: "Bitte wählen",
    kindMissing: "Die Datei sagt nicht, was sie ist. Wählen Sie, woher sie kommt.",
    kinds: {
      sillytavern: "SillyTavern, ein Zip des Ordners data/default-user",
      tavern: "Chats in der Form von Tavern, JSONL oder ein Zip davon",
      chatgpt: "ChatGPT, dessen Datenexport",
      openwebui: "Open WebUI, dessen Export der Chats",
      parlor: "Parlor, ein Export von allem",
      risuai: "RisuAI",
      agnai: "Agnai",
      card: "Figurenkarten: PNG, JSON, CHARX",
    },
    plainHttp:
      "Diese Seite kam über einfaches HTTP. Wer im selben Netz ist, kann die Datei unterwegs lesen. Über das Tailnet oder HTTPS kann es niemand.",
    look: "Durchsehen",
    lookHint: "Es ändert sich nichts, bevor Sie gesehen haben, was hereinkäme.",
    sending: "Die Datei wird gesendet",
    rate: (amount: string) => `${amount} in der Sekunde`,
    goesOn:
      "Lassen Sie diese Seite im Browser offen, bis die Datei gesendet ist. Parlor können Sie inzwischen benutzen.",
    goesOnThere: "Das geht weiter, wenn Sie die Seite verlassen. Auch Vorgänge zeigt es.",
    sendFailed: "Die Datei konnte nicht gesendet werden",
    importFailed: "Der Import ist gescheitert",
    importFailedText: "Was bis dahin hereinkam, bleibt. Ein neuer Versuch fügt nichts doppelt hinzu.",
    cancelled: "Abgebrochen. Die Datei ist noch gewählt.",
    trialTitle: "Was hereinkäme",
    trialNothing: "In dieser Datei ist nichts Neues.",
    trialAll: "Alles in dieser Datei ist schon hier.",
    reportTitle: "Was hereinkam",
    reportNothing: "Es kam nichts Neues herein.",
    beforeTitle: "Der Import davor",
    bringIn: "Importieren",
    changeKind: "Es ist etwas anderes",
    unknown: "Was sich importieren lässt, konnte nicht gelesen werden",
    again: "Etwas anderes importieren",
    endedWell: "Der Import ist fertig",
    endedBadly: "Der Import ist gescheitert",
    lookedThrough: "Die Datei ist durchgesehen",
    showReport: "Zeigen",
    things: {
      conversation: (n: number) => count(n, { one: "Chat", other: "Chats" }),
      character: (n: number) => count(n, { one: "Figur", other: "Figuren" }),
      persona: (n: number) => count(n, { one: "Persona", other: "Personas" }),
      lorebook: (n: number) => count(n, { one: "Lorebook", other: "Lorebooks" }),
      preset: (n: number) => count(n, { one: "Preset", other: "Presets" }),
      attachment: (n: number) => count(n, { one: "Bild", other: "Bilder" }),
      voice: (n: number) => count(n, { one: "Stimme", other: "Stimmen" }),
      workflow: (n: number) => count(n, { one: "Bild-Workflow", other: "Bild-Workflows" }),
      connection: (n: number) => count(n, { one: "Verbindung ohne Schlüssel", other: "Verbindungen ohne Schlüssel" }),
      image_connection: (n: number) => count(n, { one: "Bildserver", other: "Bildserver" }),
      settings: (_n: number) => "Einstellungen",
    },
    messages: (n: number) => `mit ${count(n, { one: "Nachricht", other: "Nachrichten" })}`,
    updated: (n: number) => count(n, { one: "davon neuer als hier", other: "davon neuer als hier" }),
    present: (n: number) => count(n, { one: "schon hier", other: "schon hier" }),
    refused: (n: number) => count(n, { one: "lässt sich nicht lesen", other: "lassen sich nicht lesen" }),
    isUpdated: "neuer als hier; der ältere Stand bleibt erhalten",
    unnamed: "Ohne Titel",
    more: (n: number) => `und ${count(n, { one: "weiteres", other: "weitere" })}`,
    lines: {
      refused: (n: number) => `${count(n, { one: "Sache", other: "Sachen" })} nicht lesbar`,
      left_out: (n: number) => `${count(n, { one: "Art von Dateien", other: "Arten von Dateien" })} ausgelassen`,
      changed: (n: number) => `${count(n, { one: "Sache kommt", other: "Sachen kommen" })} verändert herein`,
    },
    linesDropped: (n: number) =>
      `und ${count(n, { one: "weitere Zeile", other: "weitere Zeilen" })}, die der Bericht nicht hält`,
    showMore: (n: string) => `Die übrigen ${n} zeigen`,
    cardsIn: (n: number) => `${count(n, { one: "Figur kam", other: "Figuren kamen" })} herein`,
    uploading: (name: string) => `„${name}“ wird gesendet`,
  },

  leaving: {
    title: "Export",
    text: "Ein Zip mit dem, was Ihnen gehört: um es anderswo zu lesen oder in ein anderes Parlor zu importieren.",
    inside: "Was darin ist",
    insideText:
      "Alle Chats mit jeder Fassung jeder Antwort, die Bilder darin, Figuren, Personas, Lorebooks, Presets, Stimmen, Bild-Workflows, Einstellungen und Verbindungen ohne ihre Schlüssel, als einfache Dateien.",
    outside: "Was nicht",
    outsideText:
      "Schlüssel, Passkeys und Tokens, Modelle, frühere Stände und was im Papierkorb liegt. Eine Sicherung hat all das bis auf die Modelle.",
    unsealed: "Es ist nicht versiegelt: Wer die Datei hat, kann sie lesen.",
    save: "Alles exportieren",
    plainHttp:
      "Diese Seite kam über einfaches HTTP. Wer im selben Netz ist, kann alles davon unterwegs lesen. Exportieren Sie über das Tailnet oder HTTPS, oder am Rechner selbst.",
    understood: "Trotzdem exportieren",
  },

  backups: {
    now: "Jetzt sichern",
    running: "Eine Sicherung entsteht",
    done: "Die Sicherung ist fertig",
    failed: "Die Sicherung ist fehlgeschlagen",
    kept: "Eine verlangte bleibt, bis Sie sie aus dem Ordner nehmen.",
    sealed: "Sicherungen sind versiegelt: Ohne den Schlüssel oder die Passphrase liest sie niemand.",
    save: (name: string) => `${name} herunterladen`,
    saveShort: "Herunterladen",
  },

  licences: {
    title: "Lizenzen",
    show: "Lizenzen zeigen",
    failed: "Die Lizenzen konnten nicht gelesen werden",
    count: (n: number) => count(n, { one: "Paket", other: "Pakete" }),
    find: "Ein Paket suchen",
    none: "Kein Paket hat diese Buchstaben.",
    noText: "Es nennt diese Lizenz und bringt keinen Text davon mit.",
  },
};
