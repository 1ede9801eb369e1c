export declare function bundleBrowser(): Promise<Map<string, string>>
