import{e}from"./chunk-2QQ7WMLX.js";import"./chunk-WOT6VMZA.js";e();
