/** The first visit. */
import type { welcome as English } from "../en/welcome.ts";

/** German. */
export const welcome: typeof English = {
  firstRun: {
    title: "Ein Sprachmodell verbinden",
    text:
      "Bisher antwortet nur die eingebaute Vorführung, und die ist kein Sprachmodell. Parlor kann nach einem suchen, das auf diesem Rechner läuft.",
    find: "Modell suchen",
    manual: "Adresse eingeben",
    later: "Jetzt nicht",
  },

  welcome: {
    step: (at: number, of: number) => `Schritt ${at} von ${of}`,
    titles: { model: "Wer antwortet", name: "Ihr Name", passkey: "Dieses Parlor mit einem Passkey schützen" },
    modelText: "Parlor braucht ein Sprachmodell, mit dem es spricht. Server auf diesem Rechner werden jetzt gesucht.",
    modelThere: (name: string) => `„${name}“ antwortet. In den Einstellungen lässt sich das jederzeit ändern.`,
    nameHint:
      "Wie Figuren und Modelle Sie ansprechen dürfen. Er bleibt auf diesem Server und in dem, was Ihre Modelle bekommen.",
    passkeyLocal:
      "Dieser Rechner kommt ohne herein. Nach einem Passkey wird gefragt, wo Parlor von anderswo erreicht wird, und jede Adresse hat ihren eigenen; auch für diese Adresse ist jetzt einer möglich.",
    passkeyThere:
      "Diese Adresse öffnet sich schon mit einem Passkey. Weitere Geräte kommen unter Einstellungen, Privatsphäre hinzu.",
    goOn: "Weiter",
    skip: "Überspringen",
    start: "Gespräch beginnen",
    container:
      "Parlor läuft in einem Container und sucht nur darin. Damit es auf dem Rechner ringsum sucht, setzen Sie diese Variable, wie compose.yaml es tut, und starten Sie den Container neu.",
    elsewhere: (hosts: string) =>
      `Parlor hat auf ${hosts} gesucht. Ein Server dort antwortet nur, wenn er auf mehr als seinem eigenen Rechner lauscht.`,
    listen: "So wird jeder Server gestartet:",
    listenNote: "Andere Rechner Ihres Netzes erreichen ihn dann auch.",
  },
};
