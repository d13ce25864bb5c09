/** The node in the owner's tailnet. */
import type { tailnet as English } from "../en/tailnet.ts";

/** German. */
export const tailnet: typeof English = {
  tailnet: {
    title: "Tailnet",
    intro:
      "Parlor als Rechner in Ihrem Tailnet: Ihre Geräte erreichen es von überall unter einem Namen, und kein Port wird " +
      "zum Internet geöffnet. Es betreibt einen eigenen Knoten und lässt den dieses Rechners in Ruhe.",
    loadFailed: "Der Zustand des Knotens konnte nicht geladen werden",
    states: {
      disabled: "Aus",
      starting: "Startet",
      needs_auth: "Wartet auf Sie",
      running: "An",
      stopped: "Angehalten",
      error: "Fehlgeschlagen",
    },
    name: "Name im Tailnet",
    nameHint:
      "Buchstaben, Ziffern und Bindestriche. Das Tailnet hängt seine Domain an, und eine Zahl, wenn der Name vergeben ist.",
    nameWrong: "1 bis 63 Kleinbuchstaben, Ziffern oder Bindestriche, am Anfang und Ende kein Bindestrich",
    turnOn: "Einschalten",
    before: "Bevor Sie ihn einschalten",
    beforeOpen:
      "Wer in Ihrem Tailnet ist, erreicht dann Parlor. Bis unter der neuen Adresse der erste Passkey angelegt ist, genügt " +
      "das, um es zu benutzen: Öffnen Sie es als Erste oder Erster.",
    beforeLog: "Mit HTTPS steht der Name in öffentlichen Zertifikatslisten.",
    beforeClosed:
      "Alles andere auf diesem Rechner bleibt dem Tailnet verschlossen, außer UDP-Diensten, die auf 127.0.0.1 lauschen. " +
      "Zugriffsregeln im Tailnet, die nur die Ports 80 und 443 erlauben, schließen auch diese.",
    starting: "Der Knoten ist unterwegs. Das dauert einige Sekunden, mit einem ersten Zertifikat bis zu einer Minute.",
    stopping: "Der Knoten wird ausgeschaltet.",
    signIn: "Knoten anmelden",
    signInText:
      "Melden Sie ihn mit dem Konto Ihres Tailnets an, hier oder indem Sie dies mit einem Gerät scannen, das es hat.",
    signInQr: "QR-Code mit der Adresse zum Anmelden",
    address: "Adresse",
    addressQr: "QR-Code mit der Adresse",
    copied:
      "Öffnen Sie sie auf einem Gerät in Ihrem Tailnet und legen Sie dort einen Passkey an: Bis dahin kann jeder im Tailnet " +
      "Parlor benutzen.",
    plain: "Unverschlüsseltes HTTP",
    plainOpen:
      "Kein Passkey kann diese Adresse schließen, deshalb kann jeder im Tailnet Parlor dort benutzen. Wenn das nicht sein " +
      "soll, setzen Sie pairing = „code“ und melden Sie sich dort mit einem Token an.",
    stopped: "Jemand hat den Knoten auf diesem Rechner angehalten.",
    failed: "Der Knoten ist fehlgeschlagen",
    notOn: "Der Knoten kann nicht eingeschaltet werden",
    again: "Erneut versuchen",
    rename: "Umbenennen",
    turnOff: "Ausschalten",
    turnOffAsk: "Tailnet-Knoten ausschalten?",
    turnOffReach: (address: string) => `Niemand erreicht Parlor mehr unter ${address}.`,
    turnOffHere: "Sie benutzen diese Adresse gerade: Diese Seite wird nicht mehr funktionieren.",
    turnOffWipe:
      "Der Knoten wird abgemeldet, und alles, was er weiß, wird gelöscht, auch seine Schlüssel und sein Zertifikat. " +
      "Passkeys und Chats bleiben.",
    turnOffAgain:
      "Um ihn wieder zu benutzen, müssen Sie ihn neu anmelden. Das Tailnet behält den alten Rechner in seiner Liste, " +
      "deshalb kann der neue eine Zahl hinter seinem Namen bekommen, bis Sie den alten dort löschen.",
    turnedOff: "Tailnet-Knoten ausgeschaltet",
  },
};
